/* The recorder's common case in C: append a known operation to the main thread's open trace, and put it on the tape.

   It does what `engine/record.py` (`_record`) and `tensor/call.py` (`apply`, `attach`) do, for an operation that this
   history has met before and with nothing unusual going on. Whatever is not the common case (a first-seen operation, an
   error, another thread, autocast, hooks, ...) is left, untouched, to the Python code: nothing is changed before all of it
   is known to succeed. So there is one definition of every rule, and this file may be absent.

   The objects are the Python classes' own: their slots are read and written at the offsets of the member descriptors.
   No Python code runs between the first and the last change of a trace, so no signal handler can see half an operation. */

#include "native.h"

/* ---------------------------------------------------------------- what `configure` is given */

#define DEFINE_OBJECT(name) PyObject *name;
OBJECTS(DEFINE_OBJECT)
PyTypeObject *value_type, *tensor_type, *storage_type, *node_type, *edge_type, *base_node_type, *kernel_type;
int recorder_ready, tape_ready;
Offsets at;
static PyTypeObject *plain_first, *plain_second; /* most arrays are of one of these */
static unsigned long main_thread;

/* ---------------------------------------------------------------- one operation */

void begin(Operation *o, PyObject *op, PyObject *statics)
{
    o->op = op;
    o->statics = statics;
    o->parent = o->epoch = o->node = NULL;
    o->count = o->results = 0;
    o->room = MOST;
    o->given = o->here;
    o->values = o->here + MOST;
    o->parts = o->here + 2 * MOST;
    o->out = o->here + 3 * MOST;
    o->indices = o->indices_here;
    o->fresh = o->fresh_here;
    o->more = NULL;
}

/* Room for `count` operands and as many results: 0, or -1 with an error. */
static int make_room(Operation *o, Py_ssize_t count)
{
    PyObject **more = o->more = PyMem_Malloc(count * (4 * sizeof(PyObject *) + sizeof(Py_ssize_t) + 1));
    if (more == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    o->room = count;
    o->given = more;
    o->values = more + count;
    o->parts = more + 2 * count;
    o->out = more + 3 * count;
    o->indices = (Py_ssize_t *)(more + 4 * count);
    o->fresh = (char *)(o->indices + count);
    return 0;
}

void end(Operation *o)
{
    for (Py_ssize_t k = 0; k < o->count; k++) {
        Py_XDECREF(o->values[k]);
    }
    for (Py_ssize_t k = 0; k < o->results; k++) {
        Py_XDECREF(o->out[k]);
    }
    Py_XDECREF(o->parent);
    Py_XDECREF(o->epoch);
    Py_XDECREF(o->node);
    PyMem_Free(o->more);
}

/* Whether the common case may be looked at. */
int may_record(void)
{
    return PySet_GET_SIZE(slow) == 0 && PyThread_get_thread_ident() == main_thread && SLOT(main_trace, at.trace.busy) == Py_False;
}

static int is_plain(PyObject *array)
{
    PyTypeObject *type = Py_TYPE(array);
    return type == plain_first || type == plain_second || PySet_Contains(plain_types, (PyObject *)type) == 1;
}

/* The letter of a number's type; NULL if `x` is not exactly one of the four, or an integer beyond 64 bits. */
PyObject *letter_of(PyObject *x)
{
    if (PyFloat_CheckExact(x)) {
        return letter_f;
    }
    if (PyLong_CheckExact(x)) {
        int overflow;
        PyLong_AsLongLongAndOverflow(x, &overflow);
        return overflow ? NULL : letter_i;
    }
    if (PyBool_Check(x)) {
        return letter_b;
    }
    return PyComplex_CheckExact(x) ? letter_c : NULL;
}

/* Whether `node` is the operation, by its key (operator, static arguments, where each operand is). */
static int is_same(Operation *o, PyObject *node)
{
    PyObject *key = SLOT(node, at.tree.key);
    if (PyTuple_GET_SIZE(key) != o->count + 2 || PyTuple_GET_ITEM(key, 0) != o->op) {
        return 0;
    }
    for (Py_ssize_t k = 0; k < o->count; k++) {
        PyObject *part = PyTuple_GET_ITEM(key, k + 2);
        if (o->parts[k] != NULL ? part != o->parts[k]
                                : !PyLong_CheckExact(part) || PyLong_AsSsize_t(part) != o->indices[k]) {
            return 0;
        }
    }
    PyObject *statics = PyTuple_GET_ITEM(key, 1);
    return statics == o->statics || PyObject_RichCompareBool(statics, o->statics, Py_EQ);
}

/* Find the operation among those that have followed this history: 1, 0 if Python must look, -1 with an error. */
int find(Operation *o)
{
    PyObject *epoch = o->epoch = Py_NewRef(SLOT(main_trace, at.trace.epoch));
    PyObject *parent = o->parent = Py_NewRef(SLOT(main_trace, at.trace.node));
    Py_ssize_t leaves = PyList_GET_SIZE(SLOT(main_trace, at.trace.leaves));
    for (Py_ssize_t k = 0; k < o->count; k++) {
        PyObject *v = o->values[k];
        o->fresh[k] = 0;
        if (v == NULL) {
            o->parts[k] = letter_of(o->given[k]);
            if (o->parts[k] == NULL) {
                return 0;
            }
            continue;
        }
        o->parts[k] = NULL;
        if (SLOT(v, at.value.epoch) == epoch) {
            o->indices[k] = PyLong_AsSsize_t(SLOT(v, at.value.index));
            continue;
        }
        Py_ssize_t j = 0;
        while (j < k && !(o->fresh[j] && o->values[j] == v)) {
            j++;
        }
        if (j < k) {
            o->indices[k] = o->indices[j];
            continue;
        }
        PyObject *array = SLOT(v, at.value.array);
        if (array == NULL || array == Py_None || !is_plain(array)) {
            return PyErr_Occurred() ? -1 : 0;
        }
        o->fresh[k] = 1;
        o->indices[k] = -(++leaves);
        o->parts[k] = SLOT(v, at.value.aval);
    }
    /* What came after this history last time, most often comes again. */
    PyObject *node = SLOT(parent, at.tree.last);
    if (node != NULL && node != Py_None) {
        Py_INCREF(node);
        int same = is_same(o, node);
        if (same != 0) {
            o->node = node;
            return same;
        }
        Py_DECREF(node);
    }
    PyObject *key = PyTuple_New(o->count + 2);
    if (key == NULL) {
        return -1;
    }
    PyTuple_SET_ITEM(key, 0, Py_NewRef(o->op));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(o->statics));
    for (Py_ssize_t k = 0; k < o->count; k++) {
        PyObject *part = o->parts[k] != NULL ? Py_NewRef(o->parts[k]) : PyLong_FromSsize_t(o->indices[k]);
        PyTuple_SET_ITEM(key, k + 2, part);
        if (part == NULL) {
            Py_DECREF(key);
            return -1;
        }
    }
    node = PyDict_GetItemWithError(SLOT(parent, at.tree.children), key);
    if (node == NULL) {
        Py_DECREF(key);
        return PyErr_Occurred() ? -1 : 0; /* an unhashable static argument, for example */
    }
    o->node = Py_NewRef(node);
    Py_DECREF(key);
    PyObject *before = SLOT(parent, at.tree.last);
    SLOT(parent, at.tree.last) = Py_NewRef(node);
    Py_XDECREF(before);
    return 1;
}

/* Make the results, not yet part of the trace. */
int make_results(Operation *o)
{
    PyObject *outs = SLOT(o->node, at.tree.outs), *index = SLOT(o->node, at.tree.index);
    Py_ssize_t count = PyTuple_CheckExact(outs) || PyList_CheckExact(outs) ? PySequence_Fast_GET_SIZE(outs) : 0;
    if (count < 1 || count > o->room) {
        return 0;
    }
    Py_ssize_t first = PyLong_AsSsize_t(index);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *v = value_type->tp_alloc(value_type, 0);
        if (v == NULL) {
            return -1;
        }
        o->out[o->results++] = v;
        PyObject *number = k == 0 ? Py_NewRef(index) : PyLong_FromSsize_t(first + k);
        if (number == NULL) {
            return -1;
        }
        SLOT(v, at.value.aval) = Py_NewRef(PySequence_Fast_GET_ITEM(outs, k));
        SLOT(v, at.value.array) = Py_NewRef(Py_None);
        SLOT(v, at.value.epoch) = Py_NewRef(o->epoch);
        SLOT(v, at.value.index) = number;
    }
    return 1;
}

/* Append the operation to the trace: 1; 0 if something else was recorded since it was found (a collector's finalizer).
   Nothing here allocates an object that the collector knows, so nothing comes between. */
int commit(Operation *o)
{
    PyObject *trace = main_trace, *old, *old_epoch;
    if (SLOT(trace, at.trace.node) != o->parent || SLOT(trace, at.trace.epoch) != o->epoch || !may_record()) {
        return 0;
    }
    for (Py_ssize_t k = 0; k < o->count; k++) {
        if (o->fresh[k]) {
            PyObject *v = o->values[k], *index = PyLong_FromSsize_t(o->indices[k]);
            if (index == NULL || PyList_Append(SLOT(trace, at.trace.leaves), v) < 0) {
                Py_XDECREF(index);
                goto failed;
            }
            old = SLOT(v, at.value.index);
            old_epoch = SLOT(v, at.value.epoch);
            SLOT(v, at.value.index) = index;
            SLOT(v, at.value.epoch) = Py_NewRef(o->epoch);
            Py_XDECREF(old);
            Py_XDECREF(old_epoch);
        }
        else if (o->values[k] == NULL) {
            PyObject *letter = o->parts[k];
            Py_ssize_t list = letter == letter_f ? at.trace.floats : letter == letter_c ? at.trace.complexes : at.trace.ints;
            if (PyList_Append(SLOT(trace, list), o->given[k]) < 0) {
                goto failed;
            }
        }
    }
    for (Py_ssize_t k = 0; k < o->results; k++) {
        if (PyList_Append(SLOT(trace, at.trace.values), o->out[k]) < 0) {
            goto failed;
        }
    }
    SLOT(trace, at.trace.node) = Py_NewRef(o->node);
    Py_DECREF(o->parent); /* the trace's reference; `o` has its own */
    return 1;
failed: /* out of memory: the next operation undoes what was begun */
    old = SLOT(trace, at.trace.busy);
    SLOT(trace, at.trace.busy) = Py_NewRef(Py_True);
    Py_XDECREF(old);
    return -1;
}

int cut_if_long(Operation *o)
{
    if (SLOT(o->node, at.tree.bound) == Py_True) {
        PyObject *done = PyObject_CallOneArg(check_length, main_trace);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    return 0;
}

/* ---------------------------------------------------------------- record(operator, static arguments, operands) */

/* Record on Values and numbers: 1, with the results in o->out; 0 if Python must look, -1 with an error. */
int record_values(Operation *o, PyObject *const *given, Py_ssize_t count)
{
    if (!recorder_ready || count > MANY || !may_record()) {
        return 0;
    }
    if (count > MOST && make_room(o, count) < 0) {
        return -1;
    }
    o->count = count;
    for (Py_ssize_t k = 0; k < count; k++) {
        o->given[k] = given[k];
        o->values[k] = Py_IS_TYPE(given[k], value_type) ? Py_NewRef(given[k]) : NULL;
    }
    int done = find(o);
    if (done == 1) {
        done = make_results(o);
    }
    if (done == 1) {
        done = commit(o);
    }
    return done == 1 && cut_if_long(o) < 0 ? -1 : done;
}

static PyObject *record(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    PyObject *result = NULL;
    int done = 0;
    if (nargs == 3 && (PyTuple_CheckExact(args[2]) || PyList_CheckExact(args[2]))) {
        Operation o;
        begin(&o, args[0], args[1]);
        done = record_values(&o, PySequence_Fast_ITEMS(args[2]), PySequence_Fast_GET_SIZE(args[2]));
        if (done == 1) {
            result = PyList_New(o.results);
            for (Py_ssize_t k = 0; result != NULL && k < o.results; k++) {
                PyList_SET_ITEM(result, k, Py_NewRef(o.out[k]));
            }
        }
        end(&o);
    }
    return done == 0 ? PyObject_Vectorcall(record_general, args, nargs, NULL) : result;
}

/* ---------------------------------------------------------------- reference counts */

/* [how many references each item has, that of the list included]. Exact items: not shared small integers. */
static PyObject *refcounts(PyObject *self, PyObject *list)
{
    (void)self;
    if (!PyList_CheckExact(list)) {
        PyErr_SetString(PyExc_TypeError, "refcounts() takes a list");
        return NULL;
    }
    PyObject *counts = PyList_New(PyList_GET_SIZE(list));
    for (Py_ssize_t k = 0; counts != NULL && k < PyList_GET_SIZE(list); k++) {
        PyObject *count = PyLong_FromSsize_t(Py_REFCNT(PyList_GET_ITEM(list, k)));
        if (count == NULL) {
            Py_CLEAR(counts);
            break;
        }
        PyList_SET_ITEM(counts, k, count);
    }
    return counts;
}

/* (k, ...) of the items that something besides the list refers to. */
static PyObject *referenced(PyObject *self, PyObject *list)
{
    (void)self;
    if (!PyList_CheckExact(list)) {
        PyErr_SetString(PyExc_TypeError, "referenced() takes a list");
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(list), count = 0;
    for (Py_ssize_t k = 0; k < size; k++) {
        count += Py_REFCNT(PyList_GET_ITEM(list, k)) > 1;
    }
    PyObject *found = PyTuple_New(count);
    if (found == NULL) {
        return NULL;
    }
    /* A collection in between may have changed the counts: what there is room for is filled, and the rest cut off. */
    Py_ssize_t filled = 0;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list) && filled < count; k++) {
        if (Py_REFCNT(PyList_GET_ITEM(list, k)) > 1) {
            PyObject *number = PyLong_FromSsize_t(k);
            if (number == NULL) {
                Py_DECREF(found);
                return NULL;
            }
            PyTuple_SET_ITEM(found, filled++, number);
        }
    }
    if (filled < count && _PyTuple_Resize(&found, filled) < 0) {
        return NULL;
    }
    return found;
}

/* ---------------------------------------------------------------- configure */

/* The offset of a slot, -1 with an error. */
static Py_ssize_t offset_of(PyObject *type, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(type, name);
    if (descriptor == NULL) {
        return -1;
    }
    if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
        Py_DECREF(descriptor);
        return -1;
    }
    PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
    Py_ssize_t offset = member->type == T_OBJECT_EX ? member->offset : -1;
    Py_DECREF(descriptor);
    if (offset < 0) {
        PyErr_Format(PyExc_TypeError, "slot %s of %R is of another kind", name, type);
    }
    return offset;
}

typedef struct {
    const char *name;
    Py_ssize_t *offset;
} Slot;

static int offsets_of(PyObject *type, const Slot *slots)
{
    for (; slots->name != NULL; slots++) {
        *slots->offset = offset_of(type, slots->name);
        if (*slots->offset < 0) {
            return -1;
        }
    }
    return 0;
}

/* A strong reference to one of the given objects, kept for good. */
static PyObject *kept(PyObject *given, const char *name)
{
    PyObject *object = PyDict_GetItemString(given, name);
    if (object == NULL) {
        PyErr_Format(PyExc_KeyError, "configure: %s is missing", name);
        return NULL;
    }
    return Py_NewRef(object);
}

#define KEEP_AS(type, variable, name)                       \
    do {                                                    \
        variable = (type *)kept(given, name);               \
        if (variable == NULL) {                             \
            return NULL;                                    \
        }                                                   \
    } while (0)
#define KEEP(variable, name) KEEP_AS(PyObject, variable, name)
#define KEEP_TYPE(variable, name) KEEP_AS(PyTypeObject, variable, name)

static PyObject *configure_recorder(PyObject *self, PyObject *given)
{
    (void)self;
    recorder_ready = 0;
    PyObject *tree, *trace, *plain;
    KEEP_TYPE(value_type, "Value");
    KEEP(tree, "TreeNode");
    KEEP(trace, "Trace");
    KEEP(main_trace, "MAIN");
    KEEP(slow, "SLOW");
    KEEP(plain_types, "PLAIN");
    KEEP(record_general, "record");
    KEEP(check_length, "check_length");
    KEEP(plain, "arrays");
    if (!PySet_Check(slow) || !PySet_Check(plain_types) || !PyTuple_Check(plain) || PyTuple_GET_SIZE(plain) != 2) {
        PyErr_SetString(PyExc_TypeError, "configure_recorder: SLOW and PLAIN are sets, arrays is a pair");
        return NULL;
    }
    plain_first = (PyTypeObject *)PyTuple_GET_ITEM(plain, 0);
    plain_second = (PyTypeObject *)PyTuple_GET_ITEM(plain, 1);
    PyObject *ident = PyDict_GetItemString(given, "MAIN_THREAD");
    main_thread = ident == NULL ? 0 : PyLong_AsUnsignedLong(ident);
    if (PyErr_Occurred()) {
        return NULL;
    }
    const Slot value_slots[] = {
        {"array", &at.value.array}, {"aval", &at.value.aval}, {"epoch", &at.value.epoch}, {"index", &at.value.index}, {NULL, NULL}};
    const Slot trace_slots[] = {
        {"busy", &at.trace.busy}, {"complexes", &at.trace.complexes}, {"epoch", &at.trace.epoch}, {"floats", &at.trace.floats}, {"ints", &at.trace.ints},
        {"leaves", &at.trace.leaves}, {"node", &at.trace.node}, {"taped", &at.trace.taped}, {"values", &at.trace.values}, {NULL, NULL}};
    const Slot tree_slots[] = {
        {"bound", &at.tree.bound}, {"children", &at.tree.children}, {"grad_plans", &at.tree.grad_plans}, {"index", &at.tree.index},
        {"kernel", &at.tree.kernel}, {"key", &at.tree.key}, {"last", &at.tree.last}, {"outs", &at.tree.outs}, {NULL, NULL}};
    if (offsets_of((PyObject *)value_type, value_slots) < 0 || offsets_of(trace, trace_slots) < 0 ||
        offsets_of(tree, tree_slots) < 0) {
        return NULL;
    }
    recorder_ready = 1;
    Py_RETURN_NONE;
}

static PyObject *configure_tape(PyObject *self, PyObject *given)
{
    (void)self;
    tape_ready = 0;
    PyObject *plan, *aval, *mode;
    KEEP_TYPE(tensor_type, "Tensor");
    KEEP_TYPE(storage_type, "Storage");
    KEEP_TYPE(node_type, "OpNode");
    KEEP_TYPE(edge_type, "OutEdge");
    KEEP(plan, "GradPlan");
    KEEP(aval, "Aval");
    KEEP(mode, "MainMode");
    KEEP(main_mode, "MAIN_MODE");
    KEEP(tensor_types, "TENSOR_TYPES");
    KEEP(apply_general, "apply");
    KEEP(grad_plan, "grad_plan");
    KEEP(add_kernel, "ADD");
    KEEP(accumulate_general, "accumulate");
    KEEP_TYPE(base_node_type, "Node");
    KEEP_TYPE(kernel_type, "Kernel");
    KEEP(sequence, "sequence");
    if (!PySet_Check(tensor_types) || !PyIter_Check(sequence)) {
        PyErr_SetString(PyExc_TypeError, "configure_tape: TENSOR_TYPES is a set, sequence an iterator");
        return NULL;
    }
    const Slot tensor_slots[] = {
        {"_aval", &at.tensor.aval}, {"_gf", &at.tensor.gf}, {"_rg", &at.tensor.rg}, {"_s", &at.tensor.s}, {"_view", &at.tensor.view}, {NULL, NULL}};
    const Slot storage_slots[] = {{"value", &at.storage.value}, {"version", &at.storage.version}, {NULL, NULL}};
    const Slot node_slots[] = {
        {"edges", &at.node.edges}, {"extra", &at.node.extra}, {"plan", &at.node.plan}, {"saved", &at.node.saved}, {"seq", &at.node.seq}, {NULL, NULL}};
    const Slot edge_slots[] = {{"node", &at.edge_node}, {"nr", &at.edge_nr}, {NULL, NULL}};
    const Slot plan_slots[] = {
        {"inputs", &at.plan.inputs}, {"kernel", &at.plan.kernel}, {"outputs", &at.plan.outputs}, {"pull", &at.plan.pull}, {"saves", &at.plan.saves},
        {"whole", &at.plan.whole}, {NULL, NULL}};
    const Slot kernel_slots[] = {{"outs", &at.kernel_outs}, {NULL, NULL}};
    const Slot aval_slots[] = {{"dtype", &at.aval_dtype}, {NULL, NULL}};
    const Slot mode_slots[] = {{"enabled", &at.mode_enabled}, {NULL, NULL}};
    if (offsets_of((PyObject *)tensor_type, tensor_slots) < 0 || offsets_of((PyObject *)storage_type, storage_slots) < 0 ||
        offsets_of((PyObject *)node_type, node_slots) < 0 || offsets_of((PyObject *)edge_type, edge_slots) < 0 ||
        offsets_of(plan, plan_slots) < 0 || offsets_of((PyObject *)kernel_type, kernel_slots) < 0 || offsets_of(aval, aval_slots) < 0 || offsets_of(mode, mode_slots) < 0) {
        return NULL;
    }
    op_pull = PyObject_GetAttr((PyObject *)node_type, name_pull);
    tape_ready = recorder_ready && op_pull != NULL;
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- the module */

static PyMethodDef methods[] = {
    {"configure_recorder", configure_recorder, METH_O, PyDoc_STR("Give the recorder its classes and state, in a dict.")},
    {"configure_tape", configure_tape, METH_O, PyDoc_STR("Give the tape its classes and state, in a dict.")},
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL,
     PyDoc_STR("record(op, static, operands): as torchlike._src.engine.record.record.")},
    {"apply", (PyCFunction)(void (*)(void))apply, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("apply(op, static, operands, many=False): as torchlike._src.tensor.call.apply.")},
    {"walk", (PyCFunction)(void (*)(void))walk, METH_FASTCALL,
     PyDoc_STR("walk(edges, gradients, keep, cross, bound): a backward pass that only accumulates into leaves; False, and "
               "nothing is done, if it is not of plain operators.")},
    {"configure_arguments", configure_arguments, METH_VARARGS,
     PyDoc_STR("configure_arguments(static_argument, StaticFloat, dtype).")},
    {"static_argument", static_argument, METH_O, PyDoc_STR("As torchlike._src.tensor.publish.static_argument.")},
    {"max_pool", max_pool, METH_VARARGS,
     PyDoc_STR("max_pool(image, out, shift or None, relu, kernel, stride, dilation): max pooling of one image.")},
    {"normals", normals, METH_VARARGS,
     PyDoc_STR("normals(words, out, mean, std): fill `out`, float32[16 b], from uint32[16 b]; False, and nothing is done, "
               "without fused multiply-adds.")},
    {"quick_attributes", quick_attributes, METH_O,
     PyDoc_STR("quick_attributes(class): instances of this Module class, whose `__getattr__` is Module's, find what is in "
               "their tables without it.")},
    {"refcounts", refcounts, METH_O, PyDoc_STR("refcounts(list): the items' reference counts.")},
    {"referenced", referenced, METH_O, PyDoc_STR("referenced(list): where the items are that others refer to, too.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_torchlike_native",
    .m_doc = PyDoc_STR("The common case of torchlike's recorder, in C."),
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__torchlike_native(void)
{
    letter_f = PyUnicode_InternFromString("f");
    letter_i = PyUnicode_InternFromString("i");
    letter_b = PyUnicode_InternFromString("b");
    letter_c = PyUnicode_InternFromString("c");
    name_read = PyUnicode_InternFromString("_read");
    name_edge = PyUnicode_InternFromString("_edge");
    name_is_inference = PyUnicode_InternFromString("_is_inference");
    name_differentiable = PyUnicode_InternFromString("differentiable");
    name_floating = PyUnicode_InternFromString("is_floating_point");
    name_complex = PyUnicode_InternFromString("is_complex");
    name_pull = PyUnicode_InternFromString("pull");
    name_grad = PyUnicode_InternFromString("_grad");
    name_hooks = PyUnicode_InternFromString("_hooks");
    name_accumulate_hooks = PyUnicode_InternFromString("_accumulate_hooks");
    name_post_accumulate_hooks = PyUnicode_InternFromString("_post_accumulate_hooks");
    zero = PyLong_FromLong(0);
    empty_tuple = PyTuple_New(0);
    if (PyErr_Occurred() || PyType_Ready(&operator_type) < 0 || PyType_Ready(&elements_type) < 0) {
        return NULL;
    }
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddIntConstant(made, "ABI", ABI) < 0 ||
        PyModule_AddObjectRef(made, "Operator", (PyObject *)&operator_type) < 0 ||
        PyModule_AddObjectRef(made, "Elements", (PyObject *)&elements_type) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
