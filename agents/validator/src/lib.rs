//! The validator role: draw claims, re-execute them, prove what differs, vote.
