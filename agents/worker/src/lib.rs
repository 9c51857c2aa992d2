//! The worker role: stake, bid, fetch a shard, execute its stage, commit, answer audits.
