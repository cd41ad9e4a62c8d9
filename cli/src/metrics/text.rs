//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write;

/// Every metric with its type and its help, in the order in which they are printed.
const METRICS: [(&str, &str, &str); 12] = [
    ("osvc_info", "gauge", "Version of osvc-net."),
    ("osvc_configuration_errors", "gauge", "Network configurations that cannot be read."),
    (
        "osvc_network_error",
        "gauge",
        "1 if the network's figures cannot be told: see what osvc-net metrics says on stderr.",
    ),
    (
        "osvc_network_addresses",
        "gauge",
        "Addresses by type, as osvc-net ls has them: size (usable ones), used (held or reserved), reserved and dead (of \
         the used ones: nobody has it yet, the holder is gone), free (size without used), released (free, and kept for \
         their keys), outside (used, and not of the usable ones).",
    ),
    ("osvc_network_allocations_total", "counter", "ADDs that got an address."),
    (
        "osvc_network_conflicts_total",
        "counter",
        "ADDs that got none: the address they asked for is somebody's, or the range is full.",
    ),
    ("osvc_claim_limit", "gauge", "The most addresses of the network that the namespace may hold on this node."),
    ("osvc_claim_held", "gauge", "Addresses of the network that the namespace holds on this node."),
    ("osvc_network_host_ports", "gauge", "Host ports by state: published, standby, dead."),
    ("osvc_network_peers", "gauge", "Other nodes of the routed network."),
    ("osvc_network_peers_faulty", "gauge", "Other nodes that are not reached, or not at all of their addresses."),
    (
        "osvc_peer_last_handshake_seconds",
        "gauge",
        "When WireGuard last agreed on keys with the peer, in seconds since 1970.",
    ),
];

/// Samples, to be printed by metric.
#[derive(Debug, Default)]
pub struct Text {
    samples: Vec<(&'static str, String)>,
}

impl Text {
    /// Adds a sample of one of [`METRICS`].
    pub fn add(&mut self, metric: &'static str, labels: &[(&str, &str)], value: u128) {
        debug_assert!(METRICS.iter().any(|(name, ..)| *name == metric), "{metric} has no help");
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // A number is a float of 64 bits there: 2^64 addresses are written as what they are.
        self.samples.push((metric, format!("{metric}{labels} {value}\n")));
    }

    /// Adds those of another one.
    pub fn append(&mut self, mut other: Self) {
        self.samples.append(&mut other.samples);
    }

    /// All samples of a metric stand together, below its help and its type.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for (metric, kind, help) in METRICS {
            let mut samples = self.samples.iter().filter(|(of, _)| *of == metric).map(|(_, line)| line).peekable();
            if samples.peek().is_some() {
                let _ = write!(text, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n");
                text.extend(samples.map(String::as_str));
            }
        }
        text
    }
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric_stand_together_and_labels_are_escaped() {
        let mut text = Text::default();
        text.add("osvc_network_error", &[("network", "a")], 0);
        text.add("osvc_claim_held", &[("network", "a"), ("namespace", "x\"\\\ny")], 3);
        text.add("osvc_network_error", &[("network", "b")], 1);
        let printed = text.print();
        let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            lines,
            [
                "# TYPE osvc_network_error gauge",
                "osvc_network_error{network=\"a\"} 0",
                "osvc_network_error{network=\"b\"} 1",
                "# TYPE osvc_claim_held gauge",
                "osvc_claim_held{network=\"a\",namespace=\"x\\\"\\\\\\ny\"} 3",
            ]
        );
    }
}
