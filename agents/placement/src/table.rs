//! Tables that answer whatever they are asked: what they do not hold costs infinitely much, and no node takes it.

/// One of some costs; infinite where there is none.
#[inline]
pub(crate) fn at(costs: &[f64], place: usize) -> f64 {
    costs.get(place).copied().unwrap_or(f64::INFINITY)
}

/// Notes of nodes whether they are taken.
pub(crate) fn mark(taken: &mut [bool], nodes: &[usize], is: bool) {
    for node in nodes {
        if let Some(taken) = taken.get_mut(*node) {
            *taken = is;
        }
    }
}

/// What is counted of layers, summed up before each boundary.
#[derive(Clone, Debug)]
pub(crate) struct Sums(Vec<f64>);

impl Sums {
    /// Of an amount for each layer.
    pub(crate) fn of(amounts: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let added = amounts.map(|amount| {
            sum += amount;
            sum
        });
        Self(std::iter::once(0.0).chain(added).collect())
    }

    /// What layers `first..end` come to; infinite if there are no such layers.
    #[inline]
    pub(crate) fn between(&self, first: usize, end: usize) -> f64 {
        match (self.0.get(first), self.0.get(end)) {
            (Some(before), Some(after)) => after - before,
            _ => f64::INFINITY,
        }
    }
}

/// A value by two numbers.
#[derive(Clone, Debug)]
pub(crate) struct Grid<T> {
    columns: usize,
    cells: Vec<T>,
    /// What stands outside.
    outside: T,
}

impl<T: Copy> Grid<T> {
    /// Rows of so many columns, one after another.
    pub(crate) fn new(columns: usize, cells: impl Iterator<Item = T>, outside: T) -> Self {
        Self { columns, cells: cells.collect(), outside }
    }

    #[inline]
    pub(crate) fn at(&self, row: usize, column: usize) -> T {
        let cell = if column < self.columns { self.cells.get(row * self.columns + column) } else { None };
        cell.copied().unwrap_or(self.outside)
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        self.cells.chunks_mut(self.columns.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_costs_infinitely_much() {
        assert_eq!([at(&[2.0], 0), at(&[2.0], 1)], [2.0, f64::INFINITY]);
        let sums = Sums::of([1.0, 2.5].into_iter());
        assert_eq!([(0, 2), (1, 2), (1, 1)].map(|(first, end)| sums.between(first, end)), [3.5, 2.5, 0.0]);
        assert_eq!([(0, 3), (3, 1)].map(|(first, end)| sums.between(first, end)), [f64::INFINITY; 2]);
        let mut grid = Grid::new(2, [1, 2, 3, 4].into_iter(), 9);
        assert_eq!([grid.at(0, 1), grid.at(1, 0), grid.at(2, 0), grid.at(0, 2)], [2, 3, 9, 9]);
        assert_eq!(grid.rows_mut().map(|row| row.to_vec()).collect::<Vec<_>>(), [[1, 2], [3, 4]]);
    }

    #[test]
    fn only_nodes_that_there_are_are_marked() {
        let mut taken = [false, true, false];
        mark(&mut taken, &[0, 7], true);
        mark(&mut taken, &[1], false);
        assert_eq!(taken, [true, false, false]);
    }
}
