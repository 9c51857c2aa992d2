//! What every node stands on: the ports (`Chain`, `Net`, `Store`, `Clock`), configuration, shutdown and retry.
