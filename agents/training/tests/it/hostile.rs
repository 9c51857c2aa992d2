//! Files from strangers: whatever the bytes, an answer and no panic.

use proptest::prelude::*;
use tensorlink_training::model::weights;
use tensorlink_training::{Model, Table};

use crate::support::model;

/// Text that looks like a table, mostly.
fn csv() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        4 => (-20i32..20).prop_map(|x| x.to_string()),
        2 => any::<f64>().prop_map(|x| x.to_string()),
        1 => "[ -~]{0,6}",
        1 => prop::sample::select(vec!["1e308", "-1e-320", "1e99", "nan", "-inf", "\"", "\u{feff}", ""]).prop_map(str::to_owned),
    ];
    let row = prop::collection::vec(field, 3).prop_map(|fields| fields.join(","));
    prop::collection::vec(row, 0..12).prop_map(|rows| rows.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn tables(csv in csv(), seed in any::<u64>()) {
        if let Ok(table) = Table::parse(csv.as_bytes()) {
            let data = table.split(8, seed).unwrap();
            let rows = [&data.training, &data.held_out].map(|set| set.labels.ty().elements());
            prop_assert_eq!(rows.iter().sum::<u64>(), table.rows() as u64);
        }
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let network = model("linear 3, relu", 8, 4, 1).network(2, 2).unwrap();
        let _ = Table::parse(&bytes);
        prop_assert!(Model::parse("m", &bytes).is_err());
        prop_assert!(weights::import("w", &bytes, &network).is_err());
    }

    /// One byte of a good model file changed: refused, or a model within its bounds.
    #[test]
    fn models(index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = include_bytes!("../../../../examples/digits.json").to_vec();
        *index.get_mut(&mut file) = byte;
        if let Ok(model) = Model::parse("digits.json", &file) {
            prop_assert!(matches!(model.operand_bits(), 8 | 16));
            prop_assert!(model.batch_size().is_multiple_of(model.micro_batches()));
            prop_assert!(model.network(64, 10).is_ok());
        }
    }
}
