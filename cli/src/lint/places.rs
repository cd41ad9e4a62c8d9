//! Where each key and value of a text is.

use crate::locate::Scanner;

/// A step down into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A value of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The way to it.
    pub path: Vec<Step>,
    /// The byte where its key begins; its own, in a list.
    pub at: usize,
    /// Its text, as it is written.
    pub text: String,
}

/// All values of a document, in the order of the text.
#[derive(Debug, Default)]
pub struct Places(pub Vec<Spot>);

impl Places {
    /// The values of a text, as far as it is JSON.
    pub fn of(text: &[u8]) -> Self {
        let mut places = Self::default();
        places.value(text, &mut Scanner::new(text), &mut Vec::new(), None);
        places
    }

    fn value(
        &mut self,
        text: &[u8],
        scanner: &mut Scanner<'_>,
        path: &mut Vec<Step>,
        key: Option<usize>,
    ) -> Option<()> {
        let begin = scanner.peek()?;
        let at = scanner.at();
        let mut after = scanner.clone();
        // What is deeper than any parser goes is not looked at.
        let whole = after.value().filter(|()| path.len() < 128);
        let written = String::from_utf8_lossy(text.get(at..after.at()).unwrap_or_default()).into_owned();
        self.0.push(Spot { path: path.clone(), at: key.unwrap_or(at), text: written });
        whole?;
        let (open, close) = match begin {
            b'{' => (b'{', b'}'),
            b'[' => (b'[', b']'),
            _ => return scanner.value(),
        };
        scanner.expect(open)?;
        let mut index = 0;
        while scanner.peek()? != close {
            if index > 0 {
                scanner.expect(b',')?;
            }
            let key = match open {
                b'{' => {
                    scanner.peek()?;
                    let at = scanner.at();
                    let name = scanner.string()?;
                    let quoted = [b"\"", name, b"\""].concat();
                    let name = serde_json::from_slice::<String>(&quoted).ok()?;
                    scanner.expect(b':')?;
                    path.push(Step::Key(name));
                    Some(at)
                }
                _ => {
                    path.push(Step::Index(index));
                    None
                }
            };
            let read = self.value(text, scanner, path, key);
            path.pop();
            read?;
            index += 1;
        }
        scanner.expect(close)
    }

    /// Where a key is, whatever its case; the last of several, which is the one that counts.
    pub fn key(&self, path: &[Step]) -> Option<usize> {
        self.spot(path).map(|spot| spot.at)
    }

    fn spot(&self, path: &[Step]) -> Option<&Spot> {
        let same = |one: &Step, other: &Step| match (one, other) {
            (Step::Key(one), Step::Key(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        };
        self.0.iter().rfind(|spot| {
            spot.path.len() == path.len() && spot.path.iter().zip(path).all(|(one, other)| same(one, other))
        })
    }

    /// What is below a value.
    pub fn below<'a>(&'a self, path: &'a [Step]) -> impl Iterator<Item = &'a Spot> {
        self.0.iter().filter(move |spot| spot.path.len() > path.len() && spot.path.starts_with(path))
    }

    /// The place that an error speaks of, below a value: the key that it is about, or else the value that it quotes.
    pub fn spoken_of(&self, error: &str, below: &[Step]) -> Option<usize> {
        let key = |word: &str| {
            let word = word.trim_end_matches(['.', ':', ',', ';']).trim_matches(['`', '(', ')']);
            self.key(&below.iter().cloned().chain(steps(word)?).collect::<Vec<_>>())
        };
        let words = || error.split_whitespace();
        let after = |before: &str| key(error.split_once(before)?.1.split_whitespace().next()?);
        // Keys are English words, too: the surest signs come first.
        after("cannot honour ")
            .or_else(|| words().filter(|word| word.contains('.') || word.contains('[')).find_map(key))
            .or_else(|| words().filter(|word| word.ends_with(':')).find_map(key))
            .or_else(|| words().filter(|word| word.starts_with('`')).find_map(key))
            .or_else(|| words().next().and_then(key))
            .or_else(|| words().filter(|word| word.contains(|c: char| c.is_ascii_uppercase())).find_map(key))
            .or_else(|| self.quoted(error, below))
    }

    /// The only value below a path that is a word of the text.
    fn quoted(&self, text: &str, below: &[Step]) -> Option<usize> {
        let plain = |text: &str| text.trim_matches(|c: char| "\"`,;:.()".contains(c)).to_owned();
        let spots: Vec<&Spot> = self.below(below).filter(|spot| !spot.text.starts_with(['{', '['])).collect();
        text.split_whitespace().map(plain).filter(|word| word.len() > 2).find_map(|word| {
            let mut found = spots.iter().filter(|spot| plain(&spot.text) == word);
            let first = found.next()?;
            // Nothing is told by a word that stands in many places.
            found.next().is_none().then_some(first.at)
        })
    }
}

/// `ipam.ranges[0][1].subnet`
fn steps(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for part in text.split('.') {
        let (key, indexes) = part.split_once('[').map_or((part, ""), |(key, indexes)| (key, indexes));
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        steps.push(Step::from(key));
        for index in indexes.split(['[', ']']).filter(|index| !index.is_empty()) {
            steps.push(Step::Index(index.parse().ok()?));
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = br#"{"name": "a", "plugins": [{"type": "x", "ipam": {"ranges": [[{"subnet": "10.0.0.0/8"}]]},
  "nodes": [{"addr": "192.0.2.1"}, {"addr": "192.0.2.2"}], "n\u0061me": 1}]}"#;

    fn at(offset: Option<usize>) -> &'static str {
        let text = std::str::from_utf8(TEXT).unwrap();
        text.get(offset.unwrap()..).unwrap().split([':', ',', '}']).next().unwrap()
    }

    #[test]
    fn keys_and_values_are_found() {
        let places = Places::of(TEXT);
        assert_eq!(at(places.key(&["NAME".into()])), "\"name\"");
        let plugin = ["plugins".into(), 0.into()];
        let below = |key: &str| [&plugin[..], &[key.into()]].concat();
        assert_eq!(at(places.key(&below("name"))), "\"n\\u0061me\"");
        assert_eq!(at(places.spoken_of("cannot honour ipam.ranges[0][0].subnet 10/8: bad", &plugin)), "\"subnet\"");
        assert_eq!(at(places.spoken_of("node \"x\" has 192.0.2.2: it cannot", &plugin)), "\"addr\"");
        assert_eq!(
            places.spoken_of("node \"x\" has 192.0.2.2", &plugin),
            places.key(&[&below("nodes")[..], &[1.into(), "addr".into()]].concat())
        );
        assert_eq!(places.spoken_of("nothing of it", &plugin), None);
    }

    #[test]
    fn what_is_no_json_is_no_panic() {
        for end in 0..TEXT.len() {
            Places::of(&TEXT[..end]);
        }
        Places::of("[".repeat(100_000).as_bytes());
        Places::of(b"{\"a\":{\"b\\\"}}");
    }
}
