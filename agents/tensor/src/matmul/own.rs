//! Products by our own kernels.

use tensorlink_program::EngineError;
use tensorlink_types::TensorType;

use super::{Heads, Product, ProductDispatch, Scales, size, unavailable};
use crate::host::amx::Amx;
use crate::host::avx2::Avx2;
use crate::host::block::Precision;
use crate::host::vnni::finish::{Finish, Rescaled, Scaled, Shifted};
use crate::host::vnni::matrix::{Batch, View};
use crate::host::vnni::{Operand, Vnni};
use crate::kernels::Own;
use crate::slice::SliceMut;
use crate::tensor::TorchTensor;

impl ProductDispatch {
    pub(super) fn by_own(
        self,
        own: Own,
        product: &Product<'_>,
        to: Precision,
        output: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        let Product { a, b, offset, scales } = *product;
        let batch = Batch::single(product.shape()?, (offset, size(a.ty().row())?));
        match scales {
            Scales::None => self.multiply(own, (a, b), &batch, &Rescaled(to), output),
            Scales::Rows(r, c) => self.multiply(own, (a, b), &batch, &Scaled::new(r.slice()?, c.slice()?, to), output),
            Scales::Shifts(s, c) => {
                self.multiply(own, (a, b), &batch, &Shifted::new(s.slice()?, c.slice()?, to), output)
            }
        }
    }

    pub(super) fn heads_by_own(
        self,
        own: Own,
        which: Heads,
        (a, b): (&TorchTensor, &TorchTensor),
        (heads, to): (usize, Precision),
        output: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        let (rows, row, stride) = (size(b.ty().rows())?, size(b.ty().row())?, b.strided()?.1);
        let batch = match which {
            Heads::Scores => {
                let (t, width) = (size(a.ty().rows())?, size(a.ty().row())?);
                let depth = width / heads;
                Batch {
                    count: heads,
                    a: (View { first: 0, rows: t, width: depth, stride: width }, depth),
                    b: (View { first: 0, rows, width: depth, stride }, depth),
                    share: heads / (row / depth),
                    out: (t * rows, rows),
                }
            }
            Heads::Mix => {
                let width = size(output.row())?;
                let (t, depth) = (size(output.rows())?, width / heads);
                Batch {
                    count: heads,
                    a: (View::whole(t, row), t * row),
                    b: (View { first: 0, rows: depth, width: row, stride }, depth * stride),
                    share: heads / (rows / depth),
                    out: (depth, width),
                }
            }
        };
        self.multiply(own, (a, b), &batch, &Rescaled(to), output)
    }

    fn multiply(
        self,
        own: Own,
        (a, b): (&TorchTensor, &TorchTensor),
        batch: &Batch,
        finish: &impl Finish,
        output: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        let operands = ((a.slice()?, a.ty().limit()), (b.strided()?.0, b.ty().limit()));
        TorchTensor::build(output, |out| self.multiply_into(own, operands, batch, finish, out))
    }

    /// Products of operands in memory.
    pub(crate) fn multiply_into(
        self,
        own: Own,
        operands: (Operand<'_>, Operand<'_>),
        batch: &Batch,
        finish: &impl Finish,
        out: SliceMut<'_>,
    ) -> Result<(), EngineError> {
        let done = match own {
            Own::Avx2 => Avx2::detect(self.threads).map(|avx2| avx2.multiply(operands, batch, finish, out)),
            Own::Vnni => Vnni::detect(self.threads).map(|vnni| vnni.multiply(operands, batch, finish, out)),
            Own::Amx => Amx::detect(self.threads).map(|amx| amx.multiply(operands, batch, finish, out)),
        };
        if done.ok_or_else(unavailable)? {
            Ok(())
        } else {
            Err(EngineError::Malformed(
                "products want int8 or int16 operands, the second no wider than the first".to_owned(),
            ))
        }
    }
}
