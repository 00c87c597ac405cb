//! Normalisation, and sums over rows.

use muster_tape::{Kind, Op};

use super::Unfit;
use super::launch::{Launch, THREADS, Word, at, count, number};
use super::lower::{Lowered, ends};

/// Fewest rows of a share.
const LEAST: usize = 64;
/// Most shares.
const SHARES: usize = 512;
/// Columns of a block, and rows of a block where a warp has one.
const COLUMNS: usize = 32;
const ROWS: usize = 8;

/// A matrix, and how its rows are shared out.
#[derive(Clone, Copy)]
struct Matrix {
    rows: usize,
    columns: usize,
}

impl Matrix {
    fn per(self) -> usize {
        self.rows.div_ceil(SHARES).max(LEAST)
    }

    fn shares(self) -> usize {
        self.rows.div_ceil(self.per())
    }

    /// Bytes of one sum of every share.
    fn space(self) -> usize {
        self.shares() * self.columns * size_of::<f32>()
    }

    /// Sums of each share, to the beginning of the memory beside the tape.
    fn parts(self, kernel: &'static str, from: &[Word], more: Option<Word>) -> Result<Launch, Unfit> {
        let sizes = [count(self.rows)?, count(self.columns)?, count(self.per())?];
        let args = [Word::Space(0)].iter().chain(from).copied().chain(sizes).chain(more).collect();
        let grid = (number(self.columns.div_ceil(COLUMNS))?, number(self.shares())?);
        Ok(Launch { kernel, grid, threads: THREADS, shared: 0, args })
    }

    /// The sum of sums number `which`.
    fn total(self, kernel: &'static str, to: Word, which: usize) -> Result<Launch, Unfit> {
        let from = Word::Space(which * self.space());
        let args = vec![to, from, count(self.shares())?, count(self.columns)?, Word::F32(self.rows as f32)];
        Ok(Launch::over(kernel, self.columns, args))
    }

    /// A warp has a row.
    fn by_row(self, kernel: &'static str, op: &Op) -> Result<Launch, Unfit> {
        Launch::blocks(kernel, self.rows.div_ceil(ROWS), ends(op, [count(self.rows)?, count(self.columns)?]))
    }
}

pub(super) fn launches(op: &Op) -> Lowered {
    let read = |which: usize| at(op.reads[which]);
    let write = |which: usize| at(op.writes[which]);
    match op.kind {
        Kind::ColumnSum { rows, columns } => {
            let matrix = Matrix { rows, columns };
            let both = vec![matrix.parts("column_sums", &[read(0)], None)?, matrix.total("column_total", write(0), 0)?];
            Ok((both, matrix.space()))
        }
        Kind::LayerNorm { rows, columns } => Ok((vec![Matrix { rows, columns }.by_row("layer_norm", op)?], 0)),
        Kind::LayerNormBackward { rows, columns } => {
            Ok((vec![Matrix { rows, columns }.by_row("layer_norm_backward", op)?], 0))
        }
        Kind::LayerNormParameters { rows, columns } => {
            let matrix = Matrix { rows, columns };
            slopes(matrix, [read(0), read(1), read(2), read(3)], [write(0), write(1)], true)
        }
        Kind::BatchNorm { rows, columns } => {
            let (matrix, n) = (Matrix { rows, columns }, op.writes[0].len);
            let [x, scale, shift, mean, r] = [read(0), read(1), read(2), write(1), write(2)];
            let args = vec![write(0), x, mean, r, scale, shift, count(columns)?, Word::U64(n as u64)];
            let all = vec![
                matrix.parts("column_sums", &[x], None)?,
                matrix.total("column_mean", mean, 0)?,
                matrix.parts("column_squares", &[x, mean], None)?,
                matrix.total("column_r", r, 0)?,
                Launch::over("batch_norm", n, args),
            ];
            Ok((all, matrix.space()))
        }
        Kind::BatchNormBackward { rows, columns } => {
            let (matrix, n) = (Matrix { rows, columns }, op.writes[0].len);
            let [x, scale, mean, r, dy] = [0, 1, 2, 3, 4].map(read);
            let (d_scale, d_shift) = (write(1), write(2));
            let (mut all, space) = slopes(matrix, [x, mean, r, dy], [d_scale, d_shift], false)?;
            let sizes = [count(columns)?, Word::F32(rows as f32), Word::U64(n as u64)];
            let args = [write(0), x, scale, mean, r, dy, d_scale, d_shift].into_iter().chain(sizes).collect();
            all.push(Launch::over("batch_norm_backward", n, args));
            Ok((all, space))
        }
        ref other => Err(Unfit(format!("{other:?} is no operation on rows"))),
    }
}

/// Gradients of scale and shift. Mean and reciprocal deviation are `by_row` or by column.
fn slopes(matrix: Matrix, from: [Word; 4], to: [Word; 2], by_row: bool) -> Lowered {
    let all = vec![
        matrix.parts("column_slopes", &from, Some(Word::U32(u32::from(by_row))))?,
        matrix.total("column_total", to[0], 0)?,
        matrix.total("column_total", to[1], 1)?,
    ];
    Ok((all, 2 * matrix.space()))
}
