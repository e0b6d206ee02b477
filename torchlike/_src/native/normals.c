/* Standard normals from words, in blocks of 16: `random/box_muller.py`, bit for bit. A fused multiply-add rounds once where
 * PyTorch's kernel does; the build does not fuse others (-ffp-contract=off). */

#include "native.h"

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define FUSED __attribute__((target("avx2,fma")))
#define HAS_FUSED (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define FUSED
#ifdef FP_FAST_FMAF
#define HAS_FUSED 1
#else
#define HAS_FUSED 0
#endif
#endif

#define HALF 8

typedef union {
    float f;
    int32_t i;
} Bits;

static inline int32_t bits(float x)
{
    Bits b = {.f = x};
    return b.i;
}

static inline float from_bits(int32_t i)
{
    Bits b = {.i = i};
    return b.f;
}

FUSED static void transform(const uint32_t *words, float *out, Py_ssize_t blocks, float mean, float std)
{
    for (Py_ssize_t b = 0; b < blocks; b++, words += 2 * HALF, out += 2 * HALF) {
        float cosines[HALF], sines[HALF];
        for (int j = 0; j < HALF; j++) {
            /* The radius: 1 - u is 2**exponent * (1 + y), y between sqrt(1/2) - 1 and sqrt(2) - 1. */
            float x = 1.0f - (float)(int32_t)(words[j] & 0xFFFFFF) * 0x1p-24f;
            int32_t shift = (bits(x) - 0x3F3504F3) & -(1 << 23);
            float exponent = (float)shift * 0x1p-23f;
            float y = from_bits(bits(x) - shift) - 1.0f;
            float z = y * y;
            float p = fmaf(y, 7.0376836292e-2f, -1.1514610310e-1f);
            p = fmaf(p, y, 1.1676998740e-1f);
            p = fmaf(p, y, -1.2420140846e-1f);
            p = fmaf(p, y, 1.4249322787e-1f);
            p = fmaf(p, y, -1.6668057665e-1f);
            p = fmaf(p, y, 2.0000714765e-1f);
            p = fmaf(p, y, -2.4999993993e-1f);
            p = fmaf(p, y, 3.3333331174e-1f);
            p = fmaf(p * y, z, exponent * -2.12194440e-4f) - z * 0.5f;
            float radius = sqrtf((exponent * 0.693359375f + (y + p)) * -2.0f);
            /* The angle, less the nearest even multiple of pi/4. */
            float t = (float)(int32_t)(words[HALF + j] & 0xFFFFFF) * 0x1p-24f * 6.283185307179586f;
            int32_t octant = ((int32_t)(t * 1.27323954473516f) + 1) & ~1;
            float turn = (float)octant;
            float q = fmaf(turn, -0.78515625f, t);
            q = fmaf(turn, -2.4187564849853515625e-4f, q);
            q = fmaf(turn, -3.77489497744594108e-8f, q);
            float s = q * q;
            float c = fmaf(s, 2.443315711809948e-5f, -1.388731625493765e-3f);
            c = fmaf(c, s, 4.166664568298827e-2f);
            c = fmaf(c * s, s, -(s * 0.5f)) + 1.0f;
            float w = fmaf(s, -1.9515295891e-4f, 8.3321608736e-3f);
            w = fmaf(w, s, -1.6666654611e-1f);
            w = fmaf(w * s, q, q);
            int32_t exchange = (octant & 2) ? -1 : 0, differ = (bits(w) ^ bits(c)) & exchange;
            float sine = from_bits((bits(w) ^ differ) ^ (int32_t)((uint32_t)(octant & 4) << 29));
            float cosine = from_bits((bits(c) ^ differ) ^ (int32_t)((uint32_t)(((octant - 2) & 4) ^ 4) << 29));
            cosines[j] = radius * cosine;
            sines[j] = radius * sine;
        }
        for (int j = 0; j < HALF; j++) {
            out[j] = mean != 0.0f ? fmaf(cosines[j], std, mean) : cosines[j] * std + 0.0f;
            out[HALF + j] = mean != 0.0f ? fmaf(sines[j], std, mean) : sines[j] * std + 0.0f;
        }
    }
}

PyObject *normals(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer words, out;
    float mean, std;
    if (!PyArg_ParseTuple(args, "y*w*ff", &words, &out, &mean, &std)) {
        return NULL;
    }
    int fits = words.len == out.len && out.len % (2 * HALF * sizeof(float)) == 0;
    int done = fits && HAS_FUSED;
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        transform(words.buf, out.buf, out.len / (Py_ssize_t)(2 * HALF * sizeof(float)), mean, std);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "normals(): words and numbers, equally many, in blocks of 16");
        return NULL;
    }
    return PyBool_FromLong(done);
}
