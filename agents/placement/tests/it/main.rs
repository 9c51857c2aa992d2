//! What plans must be, on fleets that nobody chose.

mod asked;
mod constrained;
mod explained;
mod joint;
mod refused;
mod wrong;
