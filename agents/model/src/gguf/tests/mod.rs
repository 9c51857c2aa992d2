mod blocks;
mod container;
mod gemma;
mod model;
