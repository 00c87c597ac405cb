//! Products as cuBLASLt is asked for them, by definition, on the memory of a simulated device.

use muster_gpu::cublaslt::{Operand, Product};
use muster_gpu::twin::Number;
use muster_ptxsim::Memory;

/// Left operand, right operand, result and bias by address.
pub fn multiply(memory: &mut Memory, product: &Product, [left, right, result]: [u64; 3], bias: Option<u64>) {
    let Product { number, rows, columns, depth, .. } = *product;
    let element = |memory: &mut Memory, at: u64, of: Operand, (row, column): (u64, u64)| {
        let place = if of.transposed { row * of.pitch + column } else { column * of.pitch + row };
        let bytes = memory.read(at + place * number.size() as u64, number.size()).unwrap();
        match number {
            Number::Bf16 => f64::from(f32::from_bits(u32::from(u16::from_le_bytes(bytes.try_into().unwrap())) << 16)),
            Number::Fp32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            other => panic!("{other:?} is no number of a training"),
        }
    };
    let float =
        |memory: &mut Memory, at: u64| f64::from(f32::from_le_bytes(memory.read(at, 4).unwrap().try_into().unwrap()));
    for (column, row) in (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row))) {
        let at = result + (column * rows + row) * 4;
        let mut sum = if product.add { float(memory, at) } else { 0.0 };
        sum += bias.map_or(0.0, |bias| float(memory, bias + row * 4));
        for k in 0..depth {
            sum += element(memory, left, product.left, (row, k)) * element(memory, right, product.right, (k, column));
        }
        memory.write(at, &(sum as f32).to_le_bytes()).unwrap();
    }
}
