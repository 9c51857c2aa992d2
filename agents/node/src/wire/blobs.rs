//! Lists of byte strings, for `#[serde(with)]`: each is copied at once, where serde would go byte by byte through rows
//! of tensors. The encoding is the same.

use serde::{Deserialize, Deserializer, Serializer};
use serde_bytes::{ByteBuf, Bytes};

pub(super) fn serialize<S: Serializer>(blobs: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(blobs.iter().map(|blob| Bytes::new(blob)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let blobs = Vec::<ByteBuf>::deserialize(from)?;
    Ok(blobs.into_iter().map(ByteBuf::into_vec).collect())
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use tensorlink_types::{JobId, Lane};

    use crate::wire::rpc::{Advance, Response};
    use crate::wire::{decode, encode};

    /// As serde would have it by itself.
    #[derive(Serialize)]
    struct Plain {
        lane: Lane,
        text: u32,
        position: u32,
        inputs: Vec<Vec<u8>>,
        last: bool,
    }

    #[test]
    fn rows_are_encoded_as_lists_of_bytes() {
        for inputs in [vec![], vec![vec![]], vec![vec![7; 300], vec![0, 255]]] {
            let lane = Lane { job: JobId(3), stage: 1, replica: 0 };
            let plain = Plain { lane, text: 5, position: 9, inputs: inputs.clone(), last: true };
            let advance = Advance { lane, text: 5, position: 9, inputs, last: true };
            let bytes = encode("advance", &advance).unwrap();
            assert_eq!(bytes, encode("plain", &plain).unwrap());
            assert_eq!(decode::<Advance>("advance", &bytes).unwrap(), advance);
        }
        let output = vec![200; 300];
        let bytes = encode("response", &Response::Output(output.clone())).unwrap();
        assert_eq!(bytes[1..], encode("bytes", &output).unwrap());
        let advanced = Response::Advanced { output, receipt: None };
        assert_eq!(decode::<Response>("response", &encode("response", &advanced).unwrap()).unwrap(), advanced);
    }
}
