//! The executables of this package find libtorch without `LD_LIBRARY_PATH`, and it computes.

use tch::{Kind, Tensor};

#[test]
fn tch_links() {
    let a = Tensor::from_slice(&[1i32, 2, 3]);
    let sum = a.f_sum(Kind::Int64).and_then(|sum| sum.f_int64_value(&[])).expect("libtorch adds");
    assert_eq!(sum, 6);
}
