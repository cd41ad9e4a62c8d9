//! An edited document as the text that it was, but for what was edited: what people have written stays as they wrote it.

use serde_json::{Map, Value};

use crate::document;
use crate::locate::Scanner;

/// The text of `after`, from the text of `before`. Where that cannot be done it is written anew.
pub fn patched(text: &str, before: &Value, after: &Value) -> String {
    let mut scanner = Scanner::new(text.as_bytes());
    let edited = value(text, &mut scanner, before, after).map(|(start, end, new)| {
        let end = end.min(text.len());
        format!("{}{new}{}", &text[..start], &text[end..])
    });
    // Of a key that is there twice, one counts: whatever was done to the other one is of no use.
    let is_it = |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|found| found == *after);
    edited.filter(is_it).unwrap_or_else(|| document::text(after))
}

/// The next value: where it is, and what is to be there.
fn value(text: &str, scanner: &mut Scanner<'_>, before: &Value, after: &Value) -> Option<(usize, usize, String)> {
    scanner.peek()?;
    let start = scanner.at();
    let mut inside = scanner.clone();
    scanner.value()?;
    let end = scanner.at();
    let new = match (before, after) {
        _ if before == after => text.get(start..end)?.to_owned(),
        (Value::Object(before), Value::Object(after)) => object(text, &mut inside, before, after)?,
        (Value::Array(before), Value::Array(after)) => array(text, &mut inside, before, after)?,
        _ => document::inline(after),
    };
    Some((start, end, new))
}

/// An object that has the same keys, and more.
fn object(
    text: &str,
    scanner: &mut Scanner<'_>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Option<String> {
    scanner.expect(b'{')?;
    let mut done = "{".to_owned();
    let (mut from, mut gap) = (scanner.at(), "");
    for index in 0..before.len() {
        if index > 0 {
            scanner.expect(b',')?;
        }
        let comma = scanner.at();
        scanner.peek()?;
        gap = text.get(comma..scanner.at())?;
        let name = scanner.string()?;
        let name: String = serde_json::from_slice(&[b"\"", name, b"\""].concat()).ok()?;
        scanner.expect(b':')?;
        let (start, end, new) = value(text, scanner, before.get(&name)?, after.get(&name)?)?;
        done += text.get(from..start)?;
        done += &new;
        from = end;
    }
    for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
        done += &separator(done.len() > 1, gap);
        done += &format!("{}: {}", Value::from(key.as_str()), document::inline(value));
    }
    scanner.expect(b'}')?;
    Some(done + text.get(from..scanner.at())?)
}

/// A list of which some are gone, and to which some were added at the end.
fn array(text: &str, scanner: &mut Scanner<'_>, before: &[Value], after: &[Value]) -> Option<String> {
    scanner.expect(b'[')?;
    let mut done = "[".to_owned();
    let (mut from, mut gap, mut kept) = (scanner.at(), "", 0);
    for (index, old) in before.iter().enumerate() {
        if index > 0 {
            scanner.expect(b',')?;
        }
        let comma = scanner.at();
        scanner.peek()?;
        gap = text.get(comma..scanner.at())?;
        match after.get(kept).filter(|new| is_same(old, new)) {
            Some(new) => {
                let (start, end, new) = value(text, scanner, old, new)?;
                // What stood before the first one that is left, if others were before it, had their comma.
                done += if kept == 0 && index > 0 { gap } else { text.get(from..start)? };
                done += &new;
                (from, kept) = (end, kept + 1);
            }
            None => {
                scanner.value()?;
                from = if kept == 0 { from } else { scanner.at() };
            }
        }
    }
    for value in &after[kept..] {
        done += &separator(kept > 0, gap);
        done += &document::inline(value);
        kept += 1;
    }
    let last = scanner.at();
    scanner.expect(b']')?;
    Some(done + text.get(last..scanner.at())?)
}

/// What stands before one more entry: a comma unless it is the first one, and the space or the line that stood before
/// the last one.
fn separator(comma: bool, gap: &str) -> String {
    match (comma, gap) {
        (true, "") => ", ".to_owned(),
        (true, gap) => format!(",{gap}"),
        (false, gap) => gap.to_owned(),
    }
}

/// True if one entry of a list is what became of the other.
fn is_same(before: &Value, after: &Value) -> bool {
    let name = |value: &Value| Some(document::get(value.as_object()?, "name")?.as_str()?.to_lowercase());
    match (name(before), name(after)) {
        (None, None) => before.is_object() == after.is_object(),
        (before, after) => before == after,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = r#"{ "cniVersion":"1.0.0",   "name": "prod",
    "x": 12345678901234567890123, "y": [1,2 , 3],
	"plugins": [ {"type": "osvc-routed",
	    "nodes": [
	        { "name": "n1",  "addr":"192.0.2.1", "odd": 1.50 },
	        {"name":"n2"},
	        {"name": "n3", "subnet": "10.11.8.0/22"}
	    ], "z": {} }, {"type":"osvc-portmap"} ]
}
"#;

    fn edited(edit: impl FnOnce(&mut Value)) -> String {
        let before: Value = serde_json::from_str(TEXT).unwrap();
        let mut after = before.clone();
        edit(&mut after);
        let text = patched(TEXT, &before, &after);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), after, "{text}");
        text
    }

    fn nodes(document: &mut Value) -> &mut Vec<Value> {
        document["plugins"][0]["nodes"].as_array_mut().unwrap()
    }

    #[test]
    fn what_was_not_edited_is_as_it_was() {
        assert_eq!(edited(|_| {}), TEXT);
        let text = edited(|document| {
            nodes(document)[0]["subnet"] = json!("10.11.0.0/22");
            nodes(document)[1]["retired"] = json!(true);
            nodes(document).push(json!({"name": "n4", "addr": ["192.0.2.4", "fd00::4"]}));
        });
        let wanted = TEXT
            .replace("\"odd\": 1.50 }", "\"odd\": 1.50, \"subnet\": \"10.11.0.0/22\" }")
            .replace("{\"name\":\"n2\"}", "{\"name\":\"n2\", \"retired\": true}")
            .replace(
                "\"10.11.8.0/22\"}\n",
                "\"10.11.8.0/22\"},\n\t        {\"name\": \"n4\", \"addr\": [\"192.0.2.4\", \"fd00::4\"]}\n",
            );
        assert_eq!(text, wanted);
    }

    #[test]
    fn one_of_a_list_goes_with_its_comma() {
        let lines = [
            "\t        { \"name\": \"n1\",  \"addr\":\"192.0.2.1\", \"odd\": 1.50 },\n",
            "\t        {\"name\":\"n2\"},\n",
        ];
        for (index, line) in lines.iter().enumerate() {
            assert_eq!(edited(|document| drop(nodes(document).remove(index))), TEXT.replace(line, ""));
        }
        let last = edited(|document| drop(nodes(document).remove(2)));
        assert_eq!(last, TEXT.replace(",\n\t        {\"name\": \"n3\", \"subnet\": \"10.11.8.0/22\"}", ""));
        edited(|document| nodes(document).clear());
        edited(|document| {
            nodes(document).drain(..2);
            nodes(document).push(json!({"name": "n9"}));
        });
        edited(|document| document["y"] = json!([1, 2]));
        edited(|document| document["plugins"][0]["nodes"] = json!("none"));
    }

    #[test]
    fn what_cannot_be_patched_is_written_anew() {
        let twice = r#"{"a": 1, "a": {"b": 1}}"#;
        let before: Value = serde_json::from_str(twice).unwrap();
        let mut after = before.clone();
        after["a"]["b"] = json!(2);
        assert_eq!(patched(twice, &before, &after), document::text(&after));
        let mut after = serde_json::from_str::<Value>(TEXT).unwrap();
        after.as_object_mut().unwrap().remove("x");
        assert_eq!(patched(TEXT, &serde_json::from_str(TEXT).unwrap(), &after), document::text(&after));
        for text in ["", "{", "{\"a\": 1", "[1, 2"] {
            assert_eq!(patched(text, &before, &after), document::text(&after));
        }
    }
}
