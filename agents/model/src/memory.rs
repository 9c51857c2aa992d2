//! Bytes of a transformer's weights as integers, and a cut into stages.

use std::ops::Range;

use super::architecture::{Architecture, Output};
use super::parameters::{Parameter, parameters};
use super::setting::Setting;
use crate::partition::{PartitionError, partition};

/// Bytes of one parameter: matrices in the setting's bits with a scale for each row, an embedding that multiplies
/// nothing in 16 with the same, everything else in 16. Kernels keep nothing beside: they read weights as they lie here.
fn bytes(architecture: &Architecture, setting: Setting, Parameter { name, rows, columns }: &Parameter) -> u64 {
    let (rows, columns) = (u64::from(*rows), u64::from(*columns));
    let elements = rows.saturating_mul(columns);
    let (embedding, scales) = (name == "embedding.tokens", rows.saturating_mul(4));
    if name.ends_with(".weight") || (embedding && architecture.output == (Output::Logits { tied: true })) {
        elements.saturating_mul(u64::from(setting.weight_bits()).div_ceil(8)).saturating_add(scales)
    } else {
        elements.saturating_mul(2).saturating_add(if embedding { scales } else { 0 })
    }
}

/// Bytes of the weights that a stage holds in a setting: those of its layers; with the first layer the embedding, with
/// the last the output (the embedding once more if it is tied and lies in another stage). Tables and activations come
/// on top.
pub fn stage_bytes(architecture: &Architecture, setting: Setting, layers: &Range<u32>) -> u64 {
    let (first, last) = (layers.start == 0, layers.end == architecture.layers);
    let tied = architecture.output == (Output::Logits { tied: true });
    let held = |name: &str| match name.split_once('.') {
        Some(("embedding", part)) => first || (last && tied && part == "tokens"),
        Some(("layers", rest)) => {
            let number = rest.split('.').next().and_then(|number| number.parse().ok());
            number.is_some_and(|number| layers.contains(&number))
        }
        _ => last,
    };
    parameters(architecture)
        .iter()
        .filter(|p| held(&p.name))
        .map(|p| bytes(architecture, setting, p))
        .fold(0, u64::saturating_add)
}

/// Cuts a model into stages of consecutive layers such that the slowest multiplies by as few weights as possible.
/// Looking up an embedding costs next to nothing, so the first stage may hold more bytes than the others.
///
/// # Errors
/// [`PartitionError`] for no stages, or more than layers.
pub fn cut(architecture: &Architecture, stages: u16) -> Result<Vec<Range<u32>>, PartitionError> {
    let all = parameters(architecture);
    let work = |layer: u32| {
        let prefix = format!("layers.{layer}.");
        let own = all
            .iter()
            .filter(|p| p.name.starts_with(&prefix))
            // In another setting all of them have as many bits.
            .map(|p| bytes(architecture, Setting::default(), p))
            .fold(0, u64::saturating_add);
        let logits = matches!(architecture.output, Output::Logits { .. });
        let last = logits && layer.saturating_add(1) == architecture.layers;
        let head = u64::from(architecture.vocabulary).saturating_mul(architecture.width.into());
        if last { own.saturating_add(head) } else { own }
    };
    let layers: Vec<u64> = (0..architecture.layers).map(work).collect();
    let ranges = partition(&layers, &vec![u64::MAX / 64; usize::from(stages)])?;
    // As many as there are layers, which a u32 counts.
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(ranges.into_iter().map(|range| number(range.start)..number(range.end)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::config::describe;
    use super::super::family::Family;
    use super::super::fixture::{FAMILIES, Folder};
    use super::*;

    #[test]
    fn stages_hold_everything_once_and_a_tied_embedding_twice() {
        for family in FAMILIES {
            let a = describe(&Folder::new(family).config_json(), None).unwrap().architecture;
            for setting in Setting::ALL {
                let stage = |layers| stage_bytes(&a, setting, &layers);
                let all = stage(0..2);
                assert_eq!(all, parameters(&a).iter().map(|p| bytes(&a, setting, p)).sum::<u64>());
                let tied = matches!(family, Family::Gpt2 | Family::Qwen2 | Family::Gemma3);
                let weight = u64::from(setting.weight_bits() / 8);
                let again = if tied { 16 * 8 * weight + 16 * 4 } else { 0 };
                assert_eq!(stage(0..1) + stage(1..2), all + again, "{family:?}, {setting}");
            }
            assert_eq!(cut(&a, 2), Ok(vec![0..1, 1..2]));
            assert_eq!(cut(&a, 1).unwrap().first(), Some(&(0..2)));
            assert!(matches!(cut(&a, 3), Err(PartitionError::TooManyStages { .. })));
            // Where there are logits, the last stage has fewer layers for them.
            let six = Architecture { layers: 6, vocabulary: 200, ..a.clone() };
            let last = cut(&six, 3).unwrap().pop();
            assert_eq!(last, Some(if six.causal { 5..6 } else { 4..6 }), "{family:?}");
            assert_eq!(cut(&a, 0), Err(PartitionError::NoWorkers));
        }
    }
}
