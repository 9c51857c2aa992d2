//! Exact integer operators: the scalar reference that every engine and the contracts must equal bit for bit.
