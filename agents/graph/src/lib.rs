//! Model graph: shapes, reverse-mode autodiff, import, partitioner, the `Engine` trait and the reference interpreter.
