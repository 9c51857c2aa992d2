//! HeadScores and HeadMix: products, by kernels of their own.

use tensorlink_num::operators::{HeadMix, HeadScores};

use super::OnHost;

impl OnHost for HeadMix {}
impl OnHost for HeadScores {}
