/* Max pooling of one image on the host tier, with what follows it: a number added per channel, and ReLU. */

#include "native.h"

typedef struct {
    Py_ssize_t channels, outs[2], kernel[2], stride[2], dilation[2], steps[3]; /* steps: of the image, in bytes */
} Shape;

/* The largest of each column of the window's rows, then of each window of columns. */
#define POOL(name, type)                                                                                               \
    static void name(const Shape *s, const char *image, type *out, const type *shift, int relu, type *row,             \
                     Py_ssize_t columns)                                                                               \
    {                                                                                                                  \
        for (Py_ssize_t c = 0; c < s->channels; c++, image += s->steps[0]) {                                           \
            type more = shift == NULL ? 0 : shift[c];                                                                  \
            for (Py_ssize_t i = 0; i < s->outs[0]; i++, out += s->outs[1]) {                                           \
                const char *top = image + i * s->stride[0] * s->steps[1];                                              \
                memcpy(row, top, columns * sizeof(type));                                                              \
                for (Py_ssize_t k = 1; k < s->kernel[0]; k++) {                                                        \
                    const type *next = (const type *)(top + k * s->dilation[0] * s->steps[1]);                         \
                    for (Py_ssize_t j = 0; j < columns; j++) row[j] = LARGER(next[j], row[j]);                         \
                }                                                                                                      \
                for (Py_ssize_t j = 0; j < s->outs[1]; j++) out[j] = row[j * s->stride[1]];                            \
                for (Py_ssize_t k = 1; k < s->kernel[1]; k++) {                                                        \
                    const type *next = row + k * s->dilation[1];                                                       \
                    for (Py_ssize_t j = 0; j < s->outs[1]; j++) out[j] = LARGER(next[j * s->stride[1]], out[j]);       \
                }                                                                                                      \
                if (shift != NULL) {                                                                                   \
                    for (Py_ssize_t j = 0; j < s->outs[1]; j++) out[j] += more;                                        \
                }                                                                                                      \
                if (relu) {                                                                                            \
                    for (Py_ssize_t j = 0; j < s->outs[1]; j++) out[j] = out[j] <= 0 ? (type)0 : out[j];               \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

POOL(pool_float, float)
POOL(pool_double, double)

/* max_pool(image, out, shift or None, relu, kernel, stride, dilation): image (C, H, W) with rows in order, out (C, H', W'),
   shift (C), all float32 or all float64. No padding: every window lies inside. */
PyObject *max_pool(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *image, *out, *shift, *done = NULL;
    int relu;
    Shape s;
    Py_buffer views[3];
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOp(nn)(nn)(nn)", &image, &out, &shift, &relu, &s.kernel[0], &s.kernel[1], &s.stride[0],
                          &s.stride[1], &s.dilation[0], &s.dilation[1])) {
        return NULL;
    }
    void *row = NULL;
    if (PyObject_GetBuffer(image, &views[0], PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
        goto finish;
    }
    held = 1;
    if (PyObject_GetBuffer(out, &views[1], PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE | PyBUF_FORMAT) < 0) {
        goto finish;
    }
    held = 2;
    if (shift != Py_None) {
        if (PyObject_GetBuffer(shift, &views[2], PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
            goto finish;
        }
        held = 3;
    }
    Py_ssize_t item = views[0].itemsize;
    char letter = views[0].format[0];
    int fits = (letter == 'f' || letter == 'd') && views[0].format[1] == 0 && views[0].ndim == 3 && views[1].ndim == 3 &&
               views[0].strides[2] == item && views[0].shape[0] == views[1].shape[0] &&
               strcmp(views[0].format, views[1].format) == 0;
    if (fits && held == 3) {
        fits = views[2].len == views[0].shape[0] * item && strcmp(views[0].format, views[2].format) == 0;
    }
    for (int d = 0; fits && d < 2; d++) {
        s.outs[d] = views[1].shape[d + 1];
        fits = s.kernel[d] > 0 && s.stride[d] > 0 && s.dilation[d] > 0 && s.outs[d] > 0 &&
               (s.outs[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] < views[0].shape[d + 1];
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "max_pool: arrays that do not belong together");
        goto finish;
    }
    s.channels = views[0].shape[0];
    s.steps[0] = views[0].strides[0];
    s.steps[1] = views[0].strides[1];
    Py_ssize_t columns = (s.outs[1] - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    row = PyMem_Malloc(columns * item);
    if (row == NULL) {
        PyErr_NoMemory();
        goto finish;
    }
    if (letter == 'f') {
        pool_float(&s, views[0].buf, views[1].buf, held == 3 ? views[2].buf : NULL, relu, row, columns);
    }
    else {
        pool_double(&s, views[0].buf, views[1].buf, held == 3 ? views[2].buf : NULL, relu, row, columns);
    }
    done = Py_NewRef(Py_None);
finish:
    PyMem_Free(row);
    while (held > 0) {
        PyBuffer_Release(&views[--held]);
    }
    return done;
}
