//! Sample: rows that libtorch selects.

use tensorlink_num::operators::Sample;

use super::OnHost;

impl OnHost for Sample {}
