//! Which commands change something.

use super::{Adopt, Command, ConfCommand, Fsck, Hosts, IpCommand, Metrics, Release, Render, Reserve, Unreserve};

impl Command {
    /// True if it is to end what it began when it is asked to stop.
    pub fn changes_something(&self) -> bool {
        match self {
            Self::Gc { dry_run, .. } => return !dry_run,
            Self::Fsck(Fsck { repair, dry_run, .. }) => return *repair && !dry_run,
            Self::Adopt(Adopt { dry_run, .. }) => return !dry_run,
            Self::Hosts(Hosts { file, dry_run, .. }) => return file.is_some() && !dry_run,
            Self::Render(Render { file, dry_run, .. }) => return file.is_some() && !dry_run,
            Self::Metrics(Metrics { textfile, .. }) => return textfile.is_some(),
            Self::Ip { command: IpCommand::Reserve(Reserve { dry_run, .. }) }
            | Self::Ip { command: IpCommand::Unreserve(Unreserve { dry_run, .. }) }
            | Self::Ip { command: IpCommand::Release(Release { dry_run, .. }) } => return !dry_run,
            _ => {}
        }
        !matches!(
            self,
            Self::Ls(_)
                | Self::Port { .. }
                | Self::Claim { .. }
                | Self::Peers(_)
                | Self::Doctor(_)
                | Self::Watch(_)
                | Self::Completion(_)
                | Self::Man(_)
                | Self::Conf { command: ConfCommand::Lint { .. } }
                | Self::Ip { command: IpCommand::Ls(_) | IpCommand::Explain(_) | IpCommand::History(_) }
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Arguments;

    #[test]
    fn what_only_looks_ends_at_once_when_asked_to() {
        let changes = |line: &str| {
            let words = std::iter::once("osvc-net").chain(line.split(' '));
            Arguments::try_parse_from(words).unwrap().command.changes_something()
        };
        for line in [
            "fsck",
            "fsck --repair --dry-run",
            "gc --dry-run",
            "adopt --dry-run",
            "hosts",
            "hosts --file /run/hosts --dry-run",
            "render /run/template",
            "metrics",
            "conf lint /run/a.conflist",
            "ip release -n net1 web --dry-run",
            "ip reserve -n net1 web --dry-run",
            "ip unreserve -n net1 web --dry-run",
        ] {
            assert!(!changes(line), "{line}");
        }
        for line in [
            "fsck --repair",
            "gc",
            "adopt",
            "hosts --file /run/hosts",
            "render /run/template --file /run/out",
            "metrics --textfile /run/out",
            "ip release -n net1 web",
            "ip reserve -n net1 web",
            "setup",
        ] {
            assert!(changes(line), "{line}");
        }
    }
}
