//! How files lay parameters out in tensors.

/// How a parameter lies in the tensor that holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// A vector of the parameter's length.
    Vector,
    /// A matrix of the parameter's shape.
    Matrix,
    /// The first rows of a matrix that may have more.
    FirstRows,
    /// One of `parts` matrices side by side, each transposed: inputs × (parts · outputs), as GPT-2's `Conv1D` has it.
    Transposed {
        /// Which one.
        part: u32,
        /// How many there are.
        parts: u32,
    },
    /// One of `parts` matrices one above the other.
    Rows {
        /// Which one.
        part: u32,
        /// How many there are.
        parts: u32,
    },
    /// One of `parts` vectors in a row.
    Segment {
        /// Which one.
        part: u32,
        /// How many there are.
        parts: u32,
    },
    /// A matrix, or a vector, whose rows of a head go by the pairs that rotary positions turn: 0, half, 1, half + 1 …,
    /// as GGUF files have Llama's queries and keys.
    Paired {
        /// Rows of a head.
        head: u32,
    },
}

/// Rows and columns out of a flat tensor: element (r, c) is `start + place(r) · row + c · column`, where rows stay in
/// their places unless heads are paired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Rows of a head whose rows go by pairs; 0 where none do.
    pub(super) head: usize,
}

impl Window {
    /// Flat index of the first element of a row.
    pub(super) fn begin(&self, row: usize) -> usize {
        let place = match self.head / 2 {
            0 => row,
            half => {
                let within = row % self.head;
                (row - within).saturating_add(within % half * 2).saturating_add(within / half)
            }
        };
        self.start.saturating_add(place.saturating_mul(self.row))
    }

    /// Flat index of the element that is the `index`-th of the window.
    pub(super) fn flat(&self, index: usize) -> usize {
        let (r, c) = (index / self.columns.max(1), index % self.columns.max(1));
        self.begin(r).saturating_add(c.saturating_mul(self.column))
    }
}

impl Layout {
    /// The least tensor that holds a parameter of so many rows and columns, and where in it the parameter lies.
    pub(super) fn place(self, rows: u32, columns: u32) -> (Vec<usize>, Window) {
        let (rows, columns) = (rows as usize, columns as usize);
        let parts = |count: u32, of: usize| of.saturating_mul(count as usize);
        let plain = Window { start: 0, row: columns, column: 1, rows, columns, head: 0 };
        match self {
            Self::Vector => (vec![columns], plain),
            Self::Matrix | Self::FirstRows => (vec![rows, columns], plain),
            Self::Transposed { part, parts: count } => {
                let across = parts(count, rows);
                let window = Window { start: parts(part, rows), row: 1, column: across, rows, columns, head: 0 };
                (vec![columns, across], window)
            }
            Self::Rows { part, parts: count } => {
                let start = parts(part, rows).saturating_mul(columns);
                (vec![parts(count, rows), columns], Window { start, ..plain })
            }
            Self::Paired { head } if rows == 1 => {
                let window = Window { row: 1, rows: columns, columns: 1, head: head as usize, ..plain };
                (vec![columns], window)
            }
            Self::Paired { head } => (vec![rows, columns], Window { head: head as usize, ..plain }),
            Self::Segment { part, parts: count } => {
                (vec![parts(count, columns)], Window { start: parts(part, columns), ..plain })
            }
        }
    }
}
