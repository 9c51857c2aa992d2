//! What to say of a node that others cannot reach, or that reaches nobody.

use crate::config::{Config, LOCAL};

/// What a node on a real chain should be told, if nobody will find it as it is.
pub(crate) fn alone(config: &Config, chain_id: u64) -> Option<String> {
    if chain_id == LOCAL {
        return None;
    }
    let mut hints = Vec::new();
    if config.external.is_empty() && config.listen.iter().all(|address| is_loopback(address)) {
        hints.push(
            "it listens on this machine only, so that others reach it through relays at best: pass --listen \
             /ip4/0.0.0.0/tcp/4001, and behind a router --external with the address that others reach, if there is one",
        );
    }
    if config.bootstrap.is_empty() {
        hints.push("it knows no peer: pass --bootstrap with the address of one, unless it is the network's first");
    }
    if hints.is_empty() { None } else { Some(format!("this node may find nobody: {}", hints.join("; "))) }
}

fn is_loopback(address: &str) -> bool {
    ["/ip4/127.", "/ip6/::1/", "/dns/localhost/", "/dns4/localhost/", "/dns6/localhost/"]
        .iter()
        .any(|start| address.starts_with(start))
}

/// That no peer was reached, and by which addresses that was tried.
pub(crate) fn unreached(tried: &[String]) -> String {
    if tried.is_empty() {
        return "no peer was reached, as none is known: pass --bootstrap with the address that a running node says it listens on"
            .to_owned();
    }
    format!("no peer was reached; tried {}: is that node running, and is --bootstrap its address?", tried.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_on_a_real_chain_is_told_what_it_lacks() {
        let mut config = Config::defaults().unwrap();
        assert_eq!(alone(&config, LOCAL), None);
        let both = alone(&config, 1).unwrap();
        assert!(both.contains("--listen") && both.contains("--bootstrap"), "{both}");
        config.bootstrap = vec!["/ip4/192.0.2.1/tcp/4001/p2p/16Uiu2".into()];
        let listen = alone(&config, 1).unwrap();
        assert!(listen.contains("--listen") && !listen.contains("--bootstrap"), "{listen}");
        config.listen = vec!["/ip4/0.0.0.0/tcp/4001".into()];
        assert_eq!(alone(&config, 1), None);
    }

    #[test]
    fn what_was_tried_is_named() {
        assert!(unreached(&[]).contains("--bootstrap"));
        let text = unreached(&["/ip4/192.0.2.1/tcp/4001/p2p/16Uiu2".into()]);
        assert!(text.starts_with("no peer was reached; tried /ip4/192.0.2.1/tcp/4001/p2p/16Uiu2"), "{text}");
    }
}
