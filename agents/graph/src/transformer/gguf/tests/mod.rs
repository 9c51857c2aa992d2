mod blocks;
mod container;
mod model;
