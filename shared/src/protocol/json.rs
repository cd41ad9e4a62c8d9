//! JSON as Go plugins read it, so that every configuration that works for them works here.
//!
//! Keys of structs match without regard to case and the last one in the document wins; `null` and
//! `""` are absent; unknown keys are ignored. A fault is told with the path of the value.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Number, Value};

pub mod fields;

/// A value that is not what it should be, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// From the innermost to the outermost.
    path: Vec<Step>,
    problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl JsonError {
    /// The path of the value, such as `ipam.ranges[0][1].subnet`; empty for the document itself.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Index(index) => path += &format!("[{index}]"),
                Step::Key(key) if key.contains(['.', '[', '"']) || key.is_empty() => path += &format!("[{key:?}]"),
                Step::Key(key) if path.is_empty() => path += key,
                Step::Key(key) => path += &format!(".{key}"),
            }
        }
        path
    }

    /// The same fault, seen from the object that holds the value under `key`.
    pub fn under(mut self, key: &str) -> Self {
        self.path.push(Step::Key(key.to_owned()));
        self
    }

    /// The same fault, seen from the list that holds the value at `index`.
    pub fn at(mut self, index: usize) -> Self {
        self.path.push(Step::Index(index));
        self
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.problem) } else { write!(f, "{}: {}", self.path(), self.problem) }
    }
}

impl std::error::Error for JsonError {}

impl de::Error for JsonError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self { path: Vec::new(), problem: problem.to_string() }
    }
}

/// The most of a value that a message shows, in characters.
const SHOWN: usize = 80;

/// A value as a message shows it: JSON, cut when it is long, without control characters, so that no text in it passes
/// for ours.
pub fn shown(value: &Value) -> String {
    let mut shown = String::new();
    for (index, c) in value.to_string().chars().enumerate() {
        match c {
            _ if index == SHOWN => {
                shown.push('…');
                break;
            }
            // Of these, serde_json leaves DEL and C1 as they are.
            c if c.is_control() => shown += &format!("\\u{:04x}", u32::from(c)),
            c => shown.push(c),
        }
    }
    shown
}

/// The document, with its keys in their order. A repeated key stands where it stood last.
///
/// # Errors
/// Syntax, with line and column; more than 127 levels of nesting; bytes after the document.
pub fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Document>(text).map(|document| document.0)
}

/// The value of a key, whatever its case: the last one in the document that is not `null`.
pub fn get<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.iter().rfind(|(name, value)| name.eq_ignore_ascii_case(key) && !value.is_null()).map(|(_, value)| value)
}

/// The value as a type, by the rules of this module.
///
/// These reach as far as types say what they want: inside `serde(flatten)`, untagged and internally
/// tagged enums serde asks for "anything", and keys must be written exactly.
///
/// # Errors
/// The first value that does not fit, with its path.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, JsonError> {
    T::deserialize(Node(value))
}

/// What a value is, for messages: "a list", "an object"…
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn is_absent(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

struct Document(Value);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(Document(element)) = elements.next_element()? {
            list.push(element);
        }
        Ok(Document(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
        let mut object = Map::new();
        while let Some((key, Document(value))) = entries.next_entry::<String, _>()? {
            // Not at its first place: which of `Name` and `name` came last has to stay known.
            object.shift_remove(&key);
            object.insert(key, value);
        }
        Ok(Document(Value::Object(object)))
    }
}

#[derive(Clone, Copy)]
struct Node<'a>(&'a Value);

impl<'a> Node<'a> {
    fn unexpected(self) -> Unexpected<'a> {
        match self.0 {
            Value::Null => Unexpected::Other("null"),
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Unexpected::Unsigned(value),
                (None, Some(value)) => Unexpected::Signed(value),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Other("list"),
            Value::Object(_) => Unexpected::Other("object"),
        }
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => visitor.visit_u64(value),
                (None, Some(value), _) => visitor.visit_i64(value),
                (None, None, Some(value)) => visitor.visit_f64(value),
                (None, None, None) => Err(JsonError::custom(format!("number {number} out of range"))),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(list) => visitor.visit_seq(Elements { list: list.iter(), index: 0 }),
            Value::Object(object) => {
                visitor.visit_map(Entries { entries: object.iter().map(|(k, v)| (k.as_str(), v)), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        if is_absent(self.0) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let Value::Object(object) = self.0 else {
            return Err(JsonError::invalid_type(self.unexpected(), &"an object"));
        };
        let mut found: Vec<(&'static str, &'de Value)> = Vec::new();
        for (key, value) in object {
            // null leaves a Go field as it was.
            let Some(field) = fields.iter().find(|field| field.eq_ignore_ascii_case(key)).filter(|_| !value.is_null())
            else {
                continue;
            };
            found.retain(|(name, _)| name != field);
            found.push((field, value));
        }
        found.retain(|(_, value)| !is_absent(value));
        visitor.visit_map(Entries { entries: found.into_iter(), value: None })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Object(object) => visitor.visit_enum(MapAccessDeserializer::new(Entries {
                entries: object.iter().map(|(k, v)| (k.as_str(), v)),
                value: None,
            })),
            _ => Err(JsonError::invalid_type(self.unexpected(), &"a string")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier
    }
}

struct Elements<'a> {
    list: std::slice::Iter<'a, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = JsonError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonError> {
        let Some(value) = self.list.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Node(value)).map(Some).map_err(|error| error.at(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len())
    }
}

struct Entries<'a, I> {
    entries: I,
    value: Option<(&'a str, &'a Value)>,
}

impl<'de, I: Iterator<Item = (&'de str, &'de Value)>> MapAccess<'de> for Entries<'de, I> {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        self.value = self.entries.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, JsonError> {
        match self.value.take() {
            Some((key, value)) => seed.deserialize(Node(value)).map_err(|error: JsonError| error.under(key)),
            None => Err(JsonError::custom("a value was asked for before its key")),
        }
    }
}

#[cfg(test)]
mod tests;
