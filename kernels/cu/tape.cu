// Operations of a training step that treat every element alone, tables, the loss and the optimisers. What each computes is
// written at the operation of its name in the tape.
#include "common.cuh"
#include "math.cuh"

extern "C" __global__ void __launch_bounds__(256) tape_add(float *y, const float *a, const float *b, u64 n)
{
    EACH(i, n) y[i] = a[i] + b[i];
}

extern "C" __global__ void __launch_bounds__(256) tape_relu(float *y, const float *x, u64 n)
{
    EACH(i, n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(256) tape_relu_backward(float *dx, const float *y, const float *dy, u64 n)
{
    EACH(i, n) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(256) tape_gelu_backward(float *dx, const float *x, const float *dy, u64 n)
{
    EACH(i, n) dx[i] = dy[i] * gelu_slope(x[i]);
}

extern "C" __global__ void __launch_bounds__(256) tape_zero(float *y, u64 n)
{
    EACH(i, n) y[i] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(256) tape_copy(float *y, const float *x, u64 n)
{
    EACH(i, n) y[i] = x[i];
}

extern "C" __global__ void __launch_bounds__(256)
    tape_concat(float *y, const float *a, const float *b, u32 left, u32 right, u64 n)
{
    EACH(i, n)
    {
        u64 row = i / (left + right);
        u32 column = (u32)(i % (left + right));
        y[i] = column < left ? a[row * left + column] : b[row * right + column - left];
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tape_columns(float *y, const float *x, u32 all, u32 first, u32 count, u64 n)
{
    EACH(i, n) y[i] = x[i / count * all + first + i % count];
}

// SplitMix64 (Steele, Lea, Flood 2014).
__device__ __forceinline__ u64 mixed(u64 index)
{
    u64 z = (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

#define FILL(NAME, VALUE)                                                                                               \
    extern "C" __global__ void __launch_bounds__(256) NAME(float *y, u64 n, u64 seed, u32 of, u32 every)                \
    {                                                                                                                   \
        EACH(i, n) y[i] = VALUE;                                                                                        \
    }

#define BITS mixed(seed ^ i)
#define CLASS (float)(u32)__umul64hi(BITS, of)

FILL(tape_fill_uniform, ((float)(u32)(BITS >> 40) * 0x1p-23f - 1.0f) * __uint_as_float(of))
FILL(tape_fill_index, CLASS)
FILL(tape_fill_cycle, (float)(u32)(i % of))
FILL(tape_fill_sparse, i % every == every / 2 ? CLASS : -1.0f)
FILL(tape_fill_constant, __uint_as_float(of))

// `n` states; of each the four gates lie `hidden` apart.
extern "C" __global__ void __launch_bounds__(256)
    tape_lstm(float *h, float *c, float *active, const float *gates, const float *before, u32 hidden, u64 n)
{
    EACH(at, n)
    {
        u64 first = at / hidden * 4 * hidden + at % hidden;
        float i = sigmoid(gates[first]), f = sigmoid(gates[first + hidden]);
        float g = hyperbolic(gates[first + 2 * hidden]), o = sigmoid(gates[first + 3 * hidden]);
        float cell = f * before[at] + i * g;
        active[first] = i;
        active[first + hidden] = f;
        active[first + 2 * hidden] = g;
        active[first + 3 * hidden] = o;
        c[at] = cell;
        h[at] = o * hyperbolic(cell);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tape_lstm_backward(float *d_gates, float *d_before, const float *active, const float *before, const float *c,
                       const float *dh, const float *later, u32 hidden, u64 n)
{
    EACH(at, n)
    {
        u64 first = at / hidden * 4 * hidden + at % hidden;
        float i = active[first], f = active[first + hidden];
        float g = active[first + 2 * hidden], o = active[first + 3 * hidden];
        float t = hyperbolic(c[at]), dc = later[at] + dh[at] * o * (1.0f - t * t);
        float was = before[at], of_h = dh[at];
        d_gates[first] = dc * g * i * (1.0f - i);
        d_gates[first + hidden] = dc * was * f * (1.0f - f);
        d_gates[first + 2 * hidden] = dc * i * (1.0f - g * g);
        d_gates[first + 3 * hidden] = of_h * t * o * (1.0f - o);
        d_before[at] = dc * f;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tape_embedding(float *y, const float *rows, const float *table, u32 columns, u64 n)
{
    EACH(i, n) y[i] = table[(u64)rows[i / columns] * columns + i % columns];
}

// Positions that a block looks through at once, 32 of them by each thread.
#define LOOK 8192

// A block has one position. The first position of a row of the table adds the gradients of all positions of that row, in
// their order; the others have nothing to do.
extern "C" __global__ void __launch_bounds__(256)
    tape_embedding_backward(float *table, const float *rows, const float *dy, u32 columns, u32 count)
{
    __shared__ u32 same[LOOK / 32], earlier;
    float mine = rows[blockIdx.x];
    float *to = table + (u64)mine * columns;
    if (threadIdx.x == 0) earlier = 0;
    for (u32 base = 0; base < count; base += LOOK) {
        __syncthreads();
        u32 word = 0, first = base + 32 * threadIdx.x;
#pragma unroll 4
        for (u32 bit = 0; bit < 32 && first + bit < count; bit++) {
            if (rows[first + bit] != mine) continue;
            word |= 1u << bit;
            if (first + bit < blockIdx.x) earlier = 1;
        }
        same[threadIdx.x] = word;
        __syncthreads();
        if (earlier) return;
        for (u32 column = threadIdx.x; column < columns; column += blockDim.x) {
            float sum = to[column];
#pragma unroll 1
            for (u32 w = 0; w < LOOK / 32; w++) {
                if (same[w] == 0) continue;
#pragma unroll 4
                for (u32 bit = 0; bit < 32; bit++)
                    if (same[w] >> bit & 1) sum += dy[(u64)(base + 32 * w + bit) * columns + column];
            }
            to[column] = sum;
        }
    }
}

// A block has one row.
extern "C" __global__ void __launch_bounds__(512)
    tape_cross_entropy(float *losses, float *gradient, const float *logits, const float *classes, u32 columns, float weight)
{
    __shared__ float shared[32];
    float kind = classes[blockIdx.x];
    logits += (u64)blockIdx.x * columns;
    gradient += (u64)blockIdx.x * columns;
    if (kind < 0.0f) {
        for (u32 i = threadIdx.x; i < columns; i += blockDim.x) gradient[i] = 0.0f;
        if (threadIdx.x == 0) losses[blockIdx.x] = 0.0f;
        return;
    }
    float most = -1e30f, total = 0.0f;
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, logits[i]);
    most = most_of_block(most, shared);
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) total += exponential(logits[i] - most);
    total = sum_of_block(total, shared);
    u32 right = (u32)kind;
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x)
        gradient[i] = exponential(logits[i] - most) / total * weight - (i == right ? weight : 0.0f);
    if (threadIdx.x == 0) losses[blockIdx.x] = logarithm(total) + most - logits[right];
}

// One block.
extern "C" __global__ void __launch_bounds__(256) tape_mean(float *mean, const float *losses, u64 n, float counted)
{
    __shared__ float shared[32];
    float sum = 0.0f;
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) sum += losses[i];
    sum = sum_of_block(sum, shared);
    if (threadIdx.x == 0) mean[0] = sum / counted;
}

// What the number of steps changes in AdamW.
struct Clock {
    // Powers of the two rates at which moments fade.
    double powers[2];
    // By which the moments are scaled.
    float scales[2];
};

// One thread, at the beginning of a step.
extern "C" __global__ void __launch_bounds__(32) tape_advance(Clock *clock, double first, double second)
{
    if (threadIdx.x > 0) return;
    double a = clock->powers[0] * first, b = clock->powers[1] * second;
    clock->powers[0] = a;
    clock->powers[1] = b;
    clock->scales[0] = (float)(1.0 / (1.0 - a));
    clock->scales[1] = (float)(1.0 / (1.0 - b));
}

extern "C" __global__ void __launch_bounds__(256)
    tape_adamw(float *w, float *m, float *v, const float *g, const Clock *clock, float rate, float shrink, u64 n)
{
    float first = clock->scales[0], second = clock->scales[1];
    EACH(i, n)
    {
        float gradient = g[i];
        float a = 0.9f * m[i] + 0.1f * gradient, b = 0.999f * v[i] + 0.001f * gradient * gradient;
        m[i] = a;
        v[i] = b;
        w[i] = w[i] * shrink - rate * (a * first) / (sqrtf(b * second) + 1e-8f);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tape_nesterov(float *w, float *v, const float *g, float rate, float decay, u64 n)
{
    EACH(i, n)
    {
        float gradient = g[i] + decay * w[i], speed = 0.9f * v[i] + gradient;
        v[i] = speed;
        w[i] = w[i] - rate * (gradient + 0.9f * speed);
    }
}
