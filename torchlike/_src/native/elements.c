/* The host tier's elementwise operations in a row, as one function: arrays of one shape and dtype and single numbers in,
   those results out that something else needs. Blocks of a few elements go through all operations while they are in the
   cache. Each operation rounds as NumPy's does (no fused multiply-add: the file is compiled with -ffp-contract=off). */

#include "native.h"

#include <math.h>

#define BLOCK 128
#define MOST_TEMPS 64
#define MOST_SPACES 4096

enum { ADD, SUB, MUL, DIV, NEG, RELU, RELU_BACK, COPY, SQRT, MAX, OPCODES };

typedef struct {
    unsigned short code, to, a, b;
} Instruction;

/* Operands are numbered: inputs, numbers, results, temporaries. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t inputs, numbers, results, temps, size, item, total, count;
    Instruction *instructions;
    Py_ssize_t *places;               /* of the results in the list that is returned */
    PyObject *empty, *shape, *block, *dtype; /* empty(shape or block, dtype): a new array; block: (results, *shape) */
    vectorcallfunc call;
} Elements;

#define LOOPS(name, type, root)                                                                                        \
    static void name(const Instruction *i, char *const *operands, Py_ssize_t n)                                        \
    {                                                                                                                  \
        type *restrict to = (type *)operands[i->to];                                                                   \
        const type *a = (const type *)operands[i->a], *b = (const type *)operands[i->b];                               \
        switch (i->code) {                                                                                             \
        case ADD:                                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = a[k] + b[k];                                                    \
            break;                                                                                                     \
        case SUB:                                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = a[k] - b[k];                                                    \
            break;                                                                                                     \
        case MUL:                                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = a[k] * b[k];                                                    \
            break;                                                                                                     \
        case DIV:                                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = a[k] / b[k];                                                    \
            break;                                                                                                     \
        case NEG:                                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = -a[k];                                                          \
            break;                                                                                                     \
        case RELU:                                                                                                     \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = a[k] <= 0 ? (type)0 : a[k];                                     \
            break;                                                                                                     \
        case RELU_BACK: /* a: the result, b: its gradient */                                                           \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = a[k] <= 0 ? (type)0 : b[k];                                     \
            break;                                                                                                     \
        case SQRT:                                                                                                     \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = root(a[k]);                                                     \
            break;                                                                                                     \
        case MAX:                                                                                                      \
            for (Py_ssize_t k = 0; k < n; k++) to[k] = LARGER(a[k], b[k]);                                             \
            break;                                                                                                     \
        case COPY:                                                                                                     \
            memcpy(to, a, n * sizeof(type));                                                                           \
            break;                                                                                                     \
        }                                                                                                              \
    }

LOOPS(loop_float, float, sqrtf)
LOOPS(loop_double, double, sqrt)

/* A number operand (an array of one float64, float32 or int64) in the dtype of the arrays, BLOCK times. */
static int fill(const Py_buffer *view, char *block, Py_ssize_t item)
{
    char letter = view->format == NULL || view->format[1] != 0 ? 0 : view->format[0];
    long long integer = 0;
    double number = 0;
    float single = 0;
    if (letter == 'd' && view->len == 8) {
        memcpy(&number, view->buf, 8);
    }
    else if (letter == 'f' && view->len == 4) {
        memcpy(&single, view->buf, 4);
        number = single;
    }
    else if ((letter == 'l' || letter == 'q') && view->len == 8) {
        memcpy(&integer, view->buf, 8);
    }
    else {
        PyErr_SetString(PyExc_TypeError, "a number operand is one float64, float32 or int64");
        return -1;
    }
    int whole = letter == 'l' || letter == 'q';
    for (Py_ssize_t k = 0; k < BLOCK; k++) {
        if (item == 4) {
            ((float *)block)[k] = whole ? (float)integer : (float)number;
        }
        else {
            ((double *)block)[k] = whole ? (double)integer : number;
        }
    }
    return 0;
}

/* One result of several: an array, also if it has no dims (where made[k] would be a number). */
static PyObject *part(Elements *e, PyObject *made, Py_ssize_t k)
{
    if (PyTuple_CheckExact(e->shape) && PyTuple_GET_SIZE(e->shape) > 0) {
        return PySequence_GetItem(made, k);
    }
    PyObject *index = Py_BuildValue("nO", k, Py_Ellipsis);
    PyObject *found = index == NULL ? NULL : PyObject_GetItem(made, index);
    Py_XDECREF(index);
    return found;
}

/* The arrays -> [result or None, ...]. */
static PyObject *elements_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Elements *e = (Elements *)self;
    Py_ssize_t given = e->inputs + e->numbers, views_held = 0, all = given + e->results + e->temps;
    if (PyVectorcall_NARGS(nargsf) != given || names != NULL) {
        PyErr_Format(PyExc_TypeError, "expected %zd arrays", given);
        return NULL;
    }
    Py_ssize_t scratch = (e->numbers + e->temps) * BLOCK * e->item;
    Py_buffer *views = PyMem_Malloc((given + 1) * sizeof(Py_buffer));
    char **operands = PyMem_Malloc(all * sizeof(char *)), *temps = PyMem_Malloc(scratch + 1);
    PyObject *made = NULL, *list = NULL;
    if (views == NULL || operands == NULL || temps == NULL) {
        PyErr_NoMemory();
        goto finish;
    }
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *array = args[k], *copy = NULL;
        if (PyObject_GetBuffer(array, &views[k], PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
            if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError)) {
                goto finish;
            }
            PyErr_Clear(); /* not contiguous */
            copy = PyObject_CallMethod(array, "copy", NULL);
            if (copy == NULL || PyObject_GetBuffer(copy, &views[k], PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
                Py_XDECREF(copy);
                goto finish;
            }
            Py_DECREF(copy); /* the view holds it */
        }
        views_held = k + 1;
        if (k < e->inputs) {
            if (views[k].itemsize != e->item || views[k].len != e->size * e->item) {
                PyErr_SetString(PyExc_TypeError, "an array of another size or dtype");
                goto finish;
            }
            operands[k] = views[k].buf;
        }
        else {
            operands[k] = temps + (k - e->inputs) * BLOCK * e->item;
            if (fill(&views[k], operands[k], e->item) < 0) {
                goto finish;
            }
        }
    }
    PyObject *request[2] = {e->results == 1 ? e->shape : e->block, e->dtype};
    made = PyObject_Vectorcall(e->empty, request, 2, NULL);
    if (made == NULL || PyObject_GetBuffer(made, &views[given], PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) {
        goto finish;
    }
    views_held = given + 1;
    for (Py_ssize_t k = 0; k < e->results; k++) {
        operands[given + k] = (char *)views[given].buf + k * e->size * e->item;
    }
    for (Py_ssize_t k = 0; k < e->temps; k++) {
        operands[given + e->results + k] = temps + (e->numbers + k) * BLOCK * e->item;
    }
    for (Py_ssize_t done = 0; done < e->size; done += BLOCK) {
        Py_ssize_t n = e->size - done < BLOCK ? e->size - done : BLOCK;
        for (Py_ssize_t k = 0; k < e->count; k++) {
            (e->item == 4 ? loop_float : loop_double)(&e->instructions[k], operands, n);
        }
        for (Py_ssize_t k = 0; k < e->inputs; k++) {
            operands[k] += n * e->item;
        }
        for (Py_ssize_t k = 0; k < e->results; k++) {
            operands[given + k] += n * e->item;
        }
    }
    list = PyList_New(e->total);
    for (Py_ssize_t k = 0; list != NULL && k < e->total; k++) {
        PyList_SET_ITEM(list, k, Py_NewRef(Py_None));
    }
    for (Py_ssize_t k = 0; list != NULL && k < e->results; k++) {
        PyObject *one = e->results == 1 ? Py_NewRef(made) : part(e, made, k);
        if (one == NULL || PyList_SetItem(list, e->places[k], one) < 0) {
            Py_CLEAR(list);
        }
    }
finish:
    for (Py_ssize_t k = 0; k < views_held; k++) {
        PyBuffer_Release(&views[k]);
    }
    PyMem_Free(views);
    PyMem_Free(operands);
    PyMem_Free(temps);
    Py_XDECREF(made);
    return list;
}

static void elements_dealloc(PyObject *self)
{
    Elements *e = (Elements *)self;
    PyObject_GC_UnTrack(self);
    PyMem_Free(e->instructions);
    PyMem_Free(e->places);
    Py_XDECREF(e->empty);
    Py_XDECREF(e->shape);
    Py_XDECREF(e->block);
    Py_XDECREF(e->dtype);
    Py_TYPE(self)->tp_free(self);
}

static int elements_traverse(PyObject *self, visitproc visit, void *arg)
{
    Elements *e = (Elements *)self;
    Py_VISIT(e->empty);
    Py_VISIT(e->shape);
    Py_VISIT(e->block);
    Py_VISIT(e->dtype);
    return 0;
}

static PyObject *elements_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "inputs", "numbers", "temps", "places", "total",
                            "size", "item", "empty", "shape", "block", "dtype", NULL};
    Py_buffer code;
    PyObject *places, *empty, *shape, *block, *dtype;
    Py_ssize_t inputs, numbers, temps, total, size, item;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*nnnO!nnnOOOO", names, &code, &inputs, &numbers, &temps, &PyTuple_Type,
                                     &places, &total, &size, &item, &empty, &shape, &block, &dtype)) {
        return NULL;
    }
    Py_ssize_t results = PyTuple_GET_SIZE(places), count = code.len / sizeof(Instruction);
    Py_ssize_t all = inputs + numbers + results + temps;
    Elements *e = NULL;
    if (inputs < 0 || numbers < 0 || temps < 0 || temps > MOST_TEMPS || all > MOST_SPACES || results < 1 || size < 1 ||
        (item != 4 && item != 8) || code.len % sizeof(Instruction)) {
        PyErr_SetString(PyExc_ValueError, "Elements: numbers out of range");
        goto finish;
    }
    const Instruction *instructions = code.buf;
    for (Py_ssize_t k = 0; k < count; k++) {
        const Instruction *i = &instructions[k];
        if (i->code >= OPCODES || i->to < inputs + numbers || i->to >= all || i->a >= all || i->b >= all) {
            PyErr_SetString(PyExc_ValueError, "Elements: an instruction names what is not there");
            goto finish;
        }
    }
    e = (Elements *)type->tp_alloc(type, 0);
    if (e == NULL) {
        goto finish;
    }
    e->empty = Py_NewRef(empty);
    e->shape = Py_NewRef(shape);
    e->block = Py_NewRef(block);
    e->dtype = Py_NewRef(dtype);
    e->inputs = inputs;
    e->numbers = numbers;
    e->temps = temps;
    e->results = results;
    e->total = total;
    e->size = size;
    e->item = item;
    e->count = count;
    e->call = elements_call;
    e->instructions = PyMem_Malloc(code.len + 1);
    e->places = PyMem_Malloc(results * sizeof(Py_ssize_t));
    if (e->instructions == NULL || e->places == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(e);
        goto finish;
    }
    memcpy(e->instructions, code.buf, code.len);
    for (Py_ssize_t k = 0; k < results; k++) {
        e->places[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, k));
        if (e->places[k] < 0 || e->places[k] >= total) {
            PyErr_SetString(PyExc_ValueError, "Elements: a place out of range");
            Py_CLEAR(e);
            break;
        }
    }
finish:
    PyBuffer_Release(&code);
    return (PyObject *)e;
}

PyTypeObject elements_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "_torchlike_native.Elements",
    .tp_doc = PyDoc_STR("Elements(code, inputs, numbers, temps, places, total, size, item, empty, shape, block, dtype): a "
                        "function from arrays and numbers to a list of `total` items, new arrays at `places`."),
    .tp_basicsize = sizeof(Elements),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = elements_new,
    .tp_dealloc = elements_dealloc,
    .tp_traverse = elements_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Elements, call),
};
