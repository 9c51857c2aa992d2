//! Sample: rows that are selected, by a function of its own.

use tensorlink_num::operators::Sample;

use super::OnTorch;

impl OnTorch for Sample {}
