// Matrix products. On tensor cores by mma.sync: C = A * B^T with both operands stored along k, 32-bit sums. A row of a
// tile is 64 bytes whatever the type, and so is the place of each byte in it: one kernel for all types. f32 and f64 on the
// ordinary units: C = A * B, row-major. No edges: the launcher gives whole tiles.
#include "tensor.cuh"

// Operands: random words of which `keep` is kept and `set` added, so that every type gets full mantissas and small
// exponents, or any bytes.
extern "C" __global__ void __launch_bounds__(512) operand(u64 *to, u64 pairs, u32 seed, u64 keep, u64 set)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += step)
        to[i] = (((u64)pattern(seed, 2 * i + 1) << 32 | pattern(seed, 2 * i)) & keep) | set;
}

// `pitch` is a row of an operand in bytes.
template <typename Product>
__device__ __forceinline__ void tensor(u32 *c, const unsigned char *a, const unsigned char *b, u32 n, u32 pitch)
{
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 down = (warp % 2) * 64, across = (warp / 2) * 32;
    typename Product::Sum sum[4][4][4];
    a += (u64)blockIdx.y * TILE * pitch;
    b += (u64)blockIdx.x * TILE * pitch;
    Packed load = {a, b, pitch};
    multiply<Product>(sum, load, pitch / ROW, down, across);
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u64 row = (u64)blockIdx.y * TILE + down + i * 16 + lane / 4;
            u64 column = (u64)blockIdx.x * TILE + across + j * 8 + lane % 4 * 2;
            *(uint2 *)(c + row * n + column) = make_uint2(bits(sum[i][j][0]), bits(sum[i][j][1]));
            *(uint2 *)(c + (row + 8) * n + column) = make_uint2(bits(sum[i][j][2]), bits(sum[i][j][3]));
        }
}

#define GEMM(NAME, PRODUCT)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                                \
        NAME(u32 *c, const unsigned char *a, const unsigned char *b, u32 n, u32 pitch)                                  \
    {                                                                                                                   \
        tensor<PRODUCT>(c, a, b, n, pitch);                                                                             \
    }

GEMM(gemm_bf16, Bf16)
GEMM(gemm_fp16, Fp16)
GEMM(gemm_tf32, Tf32)
GEMM(gemm_int8, Int8)

// Tiles of SIDE x SIDE with 256 threads, each EDGE x EDGE sums; the next slice is fetched while this one is used.
template <typename T, int SIDE, int DEEP> __device__ __forceinline__ void simt(T *c, const T *a, const T *b, u32 n, u32 k)
{
    const int EDGE = SIDE / 16, LOADS = SIDE * DEEP / 256;
    __shared__ T left[2][DEEP][SIDE + 4], right[2][DEEP][SIDE];
    u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    a += (u64)blockIdx.y * SIDE * k;
    b += (u64)blockIdx.x * SIDE;
    T sum[EDGE][EDGE], next_a[LOADS], next_b[LOADS];
#pragma unroll
    for (int i = 0; i < EDGE; i++)
#pragma unroll
        for (int j = 0; j < EDGE; j++) sum[i][j] = T(0);
    u32 slices = k / DEEP;
#pragma unroll 1
    for (u32 s = 0; s <= slices; s++) {
        if (s < slices) {
#pragma unroll
            for (int l = 0; l < LOADS; l++) {
                u32 at = threadIdx.x + l * 256;
                next_a[l] = a[(u64)(at / DEEP) * k + s * DEEP + at % DEEP];
                next_b[l] = b[(u64)(s * DEEP + at / SIDE) * n + at % SIDE];
            }
        }
        if (s > 0) {
            u32 now = (s - 1) & 1;
#pragma unroll
            for (int d = 0; d < DEEP; d++) {
                T x[EDGE], y[EDGE];
#pragma unroll
                for (int i = 0; i < EDGE; i++) x[i] = left[now][d][ty * EDGE + i];
#pragma unroll
                for (int j = 0; j < EDGE; j++) y[j] = right[now][d][tx + j * 16];
#pragma unroll
                for (int i = 0; i < EDGE; i++)
#pragma unroll
                    for (int j = 0; j < EDGE; j++) sum[i][j] += x[i] * y[j];
            }
        }
        if (s < slices) {
#pragma unroll
            for (int l = 0; l < LOADS; l++) {
                u32 at = threadIdx.x + l * 256;
                left[s & 1][at % DEEP][at / DEEP] = next_a[l];
                right[s & 1][at / SIDE][at % SIDE] = next_b[l];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EDGE; i++)
#pragma unroll
        for (int j = 0; j < EDGE; j++)
            c[((u64)blockIdx.y * SIDE + ty * EDGE + i) * n + (u64)blockIdx.x * SIDE + tx + j * 16] = sum[i][j];
}

extern "C" __global__ void __launch_bounds__(256) gemm_f32(float *c, const float *a, const float *b, u32 n, u32 k)
{
    simt<float, 128, 8>(c, a, b, n, k);
}

extern "C" __global__ void __launch_bounds__(256) gemm_f64(double *c, const double *a, const double *b, u32 n, u32 k)
{
    simt<double, 64, 16>(c, a, b, n, k);
}
