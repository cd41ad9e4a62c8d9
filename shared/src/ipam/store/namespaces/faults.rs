//! `by-namespace/` against what the records say.

use std::fs;
use std::path::PathBuf;

use super::{Count, Holders, Namespaces};

impl Namespaces {
    /// What does not say what the holders are, with the reason; nothing where nobody would believe it anyway.
    pub fn faults(&self, holders: &Holders) -> Vec<(PathBuf, String)> {
        if fs::read_link(self.mark()).is_err() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut known = Vec::new();
        for (namespace, addresses) in &holders.0 {
            let folder = self.of(namespace);
            known.push(folder.clone());
            match fs::read_link(folder.join("held")) {
                Ok(text) => match text.to_str().and_then(Count::parse) {
                    Some(count) if count.held == addresses.len() as u64 => {}
                    Some(Count { held, .. }) => {
                        found.push((
                            folder,
                            format!("counts {held} addresses of {namespace:?}, which holds {}", addresses.len()),
                        ));
                    }
                    // Counted anew when somebody asks.
                    None => {}
                },
                Err(_) if folder.symlink_metadata().is_ok() => {}
                Err(_) => {
                    found.push((folder, format!("is missing: {namespace:?} holds {} addresses", addresses.len())));
                }
            }
        }
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten().filter(is_folder) {
            let folder = entry.path();
            let count = fs::read_link(folder.join("held")).ok().and_then(|text| text.to_str().and_then(Count::parse));
            if let Some(Count { held, .. }) = count.filter(|count| count.held > 0 && !known.contains(&folder)) {
                found.push((folder, format!("counts {held} addresses of a namespace that holds none")));
            }
        }
        found
    }
}
