//! Where a value is in a JSON text: serde_json forgets it once the text was read.

/// Line and column, from 1, of a byte offset.
pub fn place(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    (before.iter().filter(|byte| **byte == b'\n').count() + 1, before.len() - line_start + 1)
}

/// The offset of the element `index` of the list under `key` of the outermost object, in a text that is JSON.
pub fn element(text: &[u8], key: &str, index: usize) -> Option<usize> {
    let mut scanner = Scanner::new(text);
    scanner.expect(b'{')?;
    loop {
        let name = scanner.string()?;
        scanner.expect(b':')?;
        if name == key.as_bytes() {
            break;
        }
        scanner.value()?;
        scanner.expect(b',')?;
    }
    scanner.expect(b'[')?;
    for _ in 0..index {
        scanner.value()?;
        scanner.expect(b',')?;
    }
    scanner.peek()?;
    Some(scanner.at)
}

/// A text that is read from its beginning on. All of its functions end at what is no JSON, at the latest.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// How far it was read, in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space.
    pub fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Steps over that byte, and white space before it.
    pub fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// A string, without its quotes and with its escapes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            match self.text.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at - 1)
    }

    /// Steps over a value.
    pub fn value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                b',' | b':' | b'}' | b']' => return None,
                _ => {
                    while self.text.get(self.at).is_some_and(|byte| !b",:]}[{\" \t\r\n".contains(byte)) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = br#"{
  "name": "a \" plugins [",
  "x": {"plugins": [[], {}, {"a": [1, -2.5e3, true, null, "]"]}]},
  "plugins": [
    {"type": "one"},
    [],   5 ,
      {"type": "two"}
  ]
}"#;

    #[test]
    fn elements_are_found_with_line_and_column() {
        let at = |index| element(TEXT, "plugins", index).map(|offset| place(TEXT, offset));
        assert_eq!(at(0), Some((5, 5)));
        assert_eq!(at(1), Some((6, 5)));
        assert_eq!(at(2), Some((6, 11)));
        assert_eq!(at(3), Some((7, 7)));
        assert_eq!(at(9), None);
        assert_eq!(element(TEXT, "absent", 0), None);
    }

    #[test]
    fn what_is_no_json_is_no_panic() {
        for end in 0..TEXT.len() {
            element(&TEXT[..end], "plugins", 3);
        }
        for text in [&b"{\"a\\"[..], b"{\"plugins\":[,]}", b"{\"plugins\":[}", b"[]", b"{\"a\":}"] {
            element(text, "plugins", 1);
        }
    }
}
