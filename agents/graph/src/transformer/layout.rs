//! How Hugging Face's files lay parameters out in tensors.

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
    /// One of `parts` vectors in a row.
    Segment {
        /// Which one.
        part: u32,
        /// How many there are.
        parts: u32,
    },
}

/// Rows and columns out of a flat tensor: element (r, c) is `start + r · row + c · column`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Window {
    /// Flat index of the element that is the `index`-th of the window.
    pub(super) fn flat(&self, index: usize) -> usize {
        let (r, c) = (index / self.columns.max(1), index % self.columns.max(1));
        self.start.saturating_add(r.saturating_mul(self.row)).saturating_add(c.saturating_mul(self.column))
    }
}

impl Layout {
    /// The least tensor that holds a parameter of so many rows and columns, and where in it the parameter lies.
    pub(super) fn place(self, rows: u32, columns: u32) -> (Vec<usize>, Window) {
        let (rows, columns) = (rows as usize, columns as usize);
        let parts = |count: u32, of: usize| of.saturating_mul(count as usize);
        let plain = Window { start: 0, row: columns, column: 1, rows, columns };
        match self {
            Self::Vector => (vec![columns], plain),
            Self::Matrix | Self::FirstRows => (vec![rows, columns], plain),
            Self::Transposed { part, parts: count } => {
                let across = parts(count, rows);
                let window = Window { start: parts(part, rows), row: 1, column: across, rows, columns };
                (vec![columns, across], window)
            }
            Self::Segment { part, parts: count } => {
                (vec![parts(count, columns)], Window { start: parts(part, columns), ..plain })
            }
        }
    }
}
