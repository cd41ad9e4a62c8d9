//! Servers that tell whom they saw, and clients (`talk`, which a test brings along: [`machine`]).

use crate::{Netns, Output, Sandbox};

/// How long a client waits where no answer is expected, in milliseconds.
const IN_VAIN: &str = "700";

fn inside<'a>(netns: Option<&'a Netns>, words: &[&'a str]) -> Vec<&'a str> {
    let mut argv = netns.map_or_else(Vec::new, |netns| vec!["ip", "netns", "exec", &netns.name]);
    argv.push("talk");
    argv.extend(words);
    argv
}

impl Sandbox {
    /// Starts a server that answers `NAME PEER`, in a namespace or (none) on the machine itself, and waits until it is
    /// ready. `protocols`: `tcp`, `udp`, `sctp`, or several with commas; `[::]:80` is IPv4 as well.
    #[track_caller]
    pub fn serve(&self, netns: Option<&Netns>, protocols: &str, address: &str, name: &str) {
        let log = format!("/run/talk-{name}");
        let argv = inside(netns, &["serve", protocols, address, name]);
        self.background(&format!("echo $$ > {log}.pid; exec {}", argv.join(" ")), &log);
        self.wait_for(&format!("server {name} is ready"), &format!("grep -q ready {log}"));
    }

    /// Ends a server that [`Self::serve`] started.
    #[track_caller]
    pub fn end_server(&self, name: &str) {
        self.sh(&format!("kill $(cat /run/talk-{name}.pid)")).ok();
        self.wait_for("the server has ended", &format!("! kill -0 $(cat /run/talk-{name}.pid)"));
    }

    /// What a server answers a client in a namespace or (none) on the machine itself: `NAME PEER`.
    ///
    /// # Panics
    /// No answer.
    #[track_caller]
    pub fn ask(&self, from: Option<&Netns>, protocol: &str, to: &str) -> String {
        self.asked(from, &["talk", "ask", protocol, to]).ok().trim().to_owned()
    }

    /// # Panics
    /// A server answered, whoever it is.
    #[track_caller]
    pub fn ask_in_vain(&self, from: Option<&Netns>, protocol: &str, to: &str) {
        let asked = self.asked(from, &["talk", "ask", protocol, to, IN_VAIN]);
        assert!(asked.rc != 0, "nobody should have answered: {asked}");
    }

    fn asked(&self, from: Option<&Netns>, argv: &[&str]) -> Output {
        from.map_or_else(|| self.run(argv), |netns| self.run_in(netns, argv))
    }

    /// Starts a client that sends datagrams from one socket for ever. See [`Flow`].
    #[track_caller]
    pub fn flow(&self, from: Option<&Netns>, to: &str) -> Flow<'_> {
        let log = format!("/run/flow-{}", to.replace(['[', ']'], ""));
        self.background(&format!("exec {}", inside(from, &["flow", to]).join(" ")), &log);
        Flow { sandbox: self, log }
    }

    /// True if the kernel has sockets of a protocol: some have no SCTP.
    pub fn has_sockets(&self, protocol: &str) -> bool {
        self.run(&inside(None, &["has", protocol])).rc == 0
    }
}

/// A client that keeps one UDP socket, sends every 50 to 100 ms and notes each answer.
pub struct Flow<'a> {
    sandbox: &'a Sandbox,
    log: String,
}

impl Flow<'_> {
    /// Waits until three datagrams in a row, all sent from now on, have got this answer (`NAME PEER`).
    #[track_caller]
    pub fn reaches(&self, answer: &str) {
        self.wait_for_last(&format!("the flow reaches {answer}"), answer);
    }

    /// Waits until three datagrams in a row, all sent from now on, have got no answer; and three more.
    #[track_caller]
    pub fn reaches_nobody(&self) {
        self.wait_for_last("the flow has stopped", "-");
        self.wait_for_last("the flow is still stopped", "-");
    }

    fn wait_for_last(&self, what: &str, answer: &str) {
        let log = &self.log;
        // The datagram after the last noted one may be under way already.
        let start = self.sandbox.read(log).lines().count() + 1;
        self.sandbox.wait_for(
            what,
            &format!("[ $(tail -n +{} {log} | tail -n 3 | cut -d' ' -f2- | grep -cxF -e '{answer}') = 3 ]", start + 1),
        );
    }
}
