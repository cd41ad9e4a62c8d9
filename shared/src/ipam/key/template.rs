//! `ipam.key`: a key written as a template, such as `${K8S_POD_NAMESPACE}/${K8S_POD_NAME}`.

use super::{CniArgs, ContainerId, FromStr};

/// The container id, which is not one of CNI_ARGS.
const CONTAINER: &str = "CNI_CONTAINERID";

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `${` without its end.
    #[error("`${{` at byte {0} has no closing brace")]
    Open(usize),
    /// What stands between the braces is no name of a variable.
    #[error("{0:?} is no name of a CNI_ARGS variable: letters, digits and `_` only")]
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
}

/// Text, and variables in `${…}`: those of CNI_ARGS, and `CNI_CONTAINERID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTemplate(Vec<Part>);

impl FromStr for KeyTemplate {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some((name, behind)) = after.split_once('}') else {
                return Err(TemplateError::Open(text.len() - after.len() - 2));
            };
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(TemplateError::Name(name.to_owned()));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }
}

impl KeyTemplate {
    /// The text with the variables filled in; `None` if one of them is not set, or nothing comes out.
    ///
    /// A runtime that does not send a variable gets the usual key: `${K8S_POD_NAMESPACE}/${K8S_POD_NAME}` must not
    /// make one key `/` of all podman containers.
    pub fn expand(&self, args: &CniArgs, container: &ContainerId) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(part) => text += part,
                Part::Variable(name) if name == CONTAINER => text += container.as_str(),
                Part::Variable(name) => text += args.get(name)?,
            }
        }
        Some(text).filter(|text| !text.is_empty())
    }
}
