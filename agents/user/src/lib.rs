//! The user role: import a model, post a job, feed data, collect results, settle.
