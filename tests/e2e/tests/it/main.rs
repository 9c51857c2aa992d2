//! Real agents on a real chain, scenarios as tables.
