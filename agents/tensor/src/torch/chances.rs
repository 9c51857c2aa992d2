//! What draws an element at a time: Dropout and Dither (rules N-46 and N-48), in `int64`.

use tch::{Device, Kind, TchError, Tensor};
use tensorlink_num::StepContext;
use tensorlink_num::bounds::{DITHER_DRAWS, DROPOUT_DRAWS};
use tensorlink_num::operators::{Dither, Dropout};
use tensorlink_num::philox::{SERVED, key_words};

use super::philox::{LOW, philox};
use super::{OnTorch, Torch};

/// Words for `count` elements of a tensor.
fn draws(context: &StepContext, (stream, draws): (u32, u32), count: i64, device: Device) -> Result<Tensor, TchError> {
    let options = (Kind::Int64, device);
    let word = |word: i64| Tensor::f_full([1], word, options);
    let blocks = Tensor::f_arange((count + SERVED as i64 - 1) / SERVED as i64, options)?;
    let high = blocks.f_bitwise_right_shift_tensor_scalar(32)?.f_add_scalar(i64::from(draws))?.f_bitwise_and(LOW)?;
    let counter = [blocks.f_bitwise_and(LOW)?, word(context.step.into())?, word(stream.into())?, high];
    let [first, second] = key_words(&context.job_key);
    let words = philox(counter, [word(first.into())?, word(second.into())?])?;
    Tensor::f_stack(&words, 1)?.f_flatten(0, 1)?.f_narrow(0, 0, count)
}

impl OnTorch for Dropout {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let a = on.operand(0)?;
        let words = draws(on.context, (self.stream, DROPOUT_DRAWS), a.numel() as i64, a.device())?;
        let dropped = words.f_ge(self.keep)?.f_reshape(a.size())?;
        on.rescale(&a.f_mul_scalar(self.c)?, self.shift)?.f_masked_fill(&dropped, 0)
    }
}

impl OnTorch for Dither {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (p, d) = (on.matrix(0)?, on.column(1)?.f_clamp_min(1)?);
        let words = draws(on.context, (self.stream, DITHER_DRAWS), p.numel() as i64, p.device())?;
        let drawn = words.f_reshape(p.size())?.f_mul(&d)?.f_bitwise_right_shift_tensor_scalar(32)?;
        let dividend = p.f_bitwise_left_shift_tensor_scalar(i64::from(self.bits))?.f_add(&drawn)?;
        dividend.f_div_tensor_mode(&d, "floor")?.f_clamp(-on.limit, on.limit)
    }
}
