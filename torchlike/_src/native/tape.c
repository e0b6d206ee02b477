/* Operations on tensors: recorded, wrapped, and put on the tape. See recorder.c. */

#include "native.h"

/* ---------------------------------------------------------------- apply(operator, static arguments, tensors) */

/* Whether an attribute is true; -1 with an error. */
int is_true(PyObject *object, PyObject *name)
{
    PyObject *flag = PyObject_GetAttr(object, name);
    if (flag == NULL) {
        return -1;
    }
    int truth = PyObject_IsTrue(flag);
    Py_DECREF(flag);
    return truth;
}

PyObject *new_tensor(PyObject *v)
{
    PyObject *t = PyBaseObject_Type.tp_new(tensor_type, empty_tuple, NULL);
    if (t == NULL) {
        return NULL;
    }
    PyObject *s = storage_type->tp_alloc(storage_type, 0);
    if (s == NULL) {
        Py_DECREF(t);
        return NULL;
    }
    SLOT(s, at.storage.value) = Py_NewRef(v);
    SLOT(s, at.storage.version) = Py_NewRef(zero);
    SLOT(t, at.tensor.s) = s;
    SLOT(t, at.tensor.view) = Py_NewRef(Py_None);
    SLOT(t, at.tensor.aval) = Py_NewRef(SLOT(v, at.value.aval));
    SLOT(t, at.tensor.rg) = Py_NewRef(Py_False);
    SLOT(t, at.tensor.gf) = Py_NewRef(Py_None);
    return t;
}

/* (value or number, storage or None, version) */
static PyObject *triple(PyObject *value, PyObject *storage, PyObject *version)
{
    PyObject *item = PyTuple_New(3);
    if (item != NULL) {
        PyTuple_SET_ITEM(item, 0, Py_NewRef(value));
        PyTuple_SET_ITEM(item, 1, Py_NewRef(storage));
        PyTuple_SET_ITEM(item, 2, Py_NewRef(version));
    }
    return item;
}

/* What the tape's node keeps for backward. NULL without an error: Python must look. */
static PyObject *saved_of(Operation *o, PyObject *plan, PyObject **tensors)
{
    if (SLOT(plan, at.plan.saves) != Py_True && SLOT(plan, at.plan.whole) != Py_True) {
        return Py_NewRef(empty_tuple);
    }
    PyObject *inputs = SLOT(plan, at.plan.inputs), *outputs = SLOT(plan, at.plan.outputs);
    if (!PyTuple_CheckExact(inputs) || !PyTuple_CheckExact(outputs)) {
        return NULL;
    }
    Py_ssize_t ins = PyTuple_GET_SIZE(inputs), outs = PyTuple_GET_SIZE(outputs);
    Py_ssize_t all = SLOT(plan, at.plan.whole) == Py_True ? o->count : 0;
    PyObject *saved = PyTuple_New(ins + outs + all), *item;
    if (saved == NULL) {
        return NULL;
    }
    for (Py_ssize_t k = 0; k < ins; k++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(inputs, k));
        PyObject *x = o->given[place];
        if (o->values[place] == NULL) {
            item = triple(x, Py_None, zero);
        }
        else {
            if (is_true(x, name_is_inference) != 0) {
                Py_DECREF(saved);
                return NULL;
            }
            PyObject *s = SLOT(x, at.tensor.s);
            item = triple(o->values[place], s, SLOT(s, at.storage.version));
        }
        PyTuple_SET_ITEM(saved, k, item);
        if (item == NULL) {
            Py_DECREF(saved);
            return NULL;
        }
    }
    for (Py_ssize_t k = 0; k < outs; k++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(outputs, k));
        item = triple(o->out[place], SLOT(tensors[place], at.tensor.s), zero);
        PyTuple_SET_ITEM(saved, ins + k, item);
        if (item == NULL) {
            Py_DECREF(saved);
            return NULL;
        }
    }
    for (Py_ssize_t k = 0; k < all; k++) {
        item = triple(o->values[k] != NULL ? o->values[k] : o->given[k], Py_None, zero);
        PyTuple_SET_ITEM(saved, ins + outs + k, item);
        if (item == NULL) {
            Py_DECREF(saved);
            return NULL;
        }
    }
    return saved;
}

/* The plan for the gradient of these operands (a new reference; None: there is none). */
static PyObject *plan_of(Operation *o, PyObject **edges)
{
    long need = 0;
    for (Py_ssize_t k = 0; k < o->count; k++) {
        need |= edges[k] != Py_None ? 1L << k : 0;
    }
    PyObject *number = PyLong_FromLong(need);
    if (number == NULL) {
        return NULL;
    }
    PyObject *plans = SLOT(o->node, at.tree.grad_plans), *plan = PyDict_GetItemWithError(plans, number);
    if (plan != NULL) {
        Py_INCREF(plan);
    }
    else if (!PyErr_Occurred()) {
        PyObject *which = PyTuple_New(o->count);
        if (which != NULL) {
            for (Py_ssize_t k = 0; k < o->count; k++) {
                PyTuple_SET_ITEM(which, k, Py_NewRef(edges[k] != Py_None ? Py_True : Py_False));
            }
            plan = PyObject_CallFunctionObjArgs(grad_plan, SLOT(o->node, at.tree.kernel), which, NULL);
            Py_DECREF(which);
            if (plan != NULL && PyDict_SetItem(plans, number, plan) < 0) {
                Py_CLEAR(plan);
            }
        }
    }
    Py_DECREF(number);
    return plan;
}

/* Hang the results on a node of the tape. `edges`: strong references, taken over. */
static int hang(Operation *o, PyObject *plan, PyObject **edges, PyObject **tensors)
{
    PyObject *saved = saved_of(o, plan, tensors);
    if (saved == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *all = PyTuple_New(o->count), *number = NULL, *node = NULL;
    if (all != NULL) {
        for (Py_ssize_t k = 0; k < o->count; k++) {
            PyTuple_SET_ITEM(all, k, edges[k]);
            edges[k] = NULL;
        }
        number = PyIter_Next(sequence);
    }
    if (number != NULL) {
        node = node_type->tp_alloc(node_type, 0);
    }
    if (node == NULL) {
        Py_DECREF(saved);
        Py_XDECREF(all);
        Py_XDECREF(number);
        return -1;
    }
    SLOT(node, at.node.edges) = all;
    SLOT(node, at.node.seq) = number;
    SLOT(node, at.node.extra) = Py_NewRef(Py_None);
    SLOT(node, at.node.plan) = Py_NewRef(plan);
    SLOT(node, at.node.saved) = saved;
    for (Py_ssize_t k = 0; k < o->results; k++) {
        PyObject *t = tensors[k], *edge;
        if (o->results > 1) {
            PyObject *dtype = SLOT(SLOT(t, at.tensor.aval), at.aval_dtype);
            int differentiable = is_true(dtype, name_floating);
            if (differentiable == 0) {
                differentiable = is_true(dtype, name_complex);
            }
            if (differentiable <= 0) {
                if (differentiable < 0) {
                    Py_DECREF(node);
                    return -1;
                }
                continue;
            }
        }
        if (k == 0) {
            edge = Py_NewRef(node);
        }
        else {
            edge = edge_type->tp_alloc(edge_type, 0);
            PyObject *place = edge == NULL ? NULL : PyLong_FromSsize_t(k);
            if (place == NULL) {
                Py_XDECREF(edge);
                Py_DECREF(node);
                return -1;
            }
            SLOT(edge, at.edge_node) = Py_NewRef(node);
            SLOT(edge, at.edge_nr) = place;
        }
        PyObject *old = SLOT(t, at.tensor.gf), *flag = SLOT(t, at.tensor.rg);
        SLOT(t, at.tensor.gf) = edge;
        SLOT(t, at.tensor.rg) = Py_NewRef(Py_True);
        Py_DECREF(old);
        Py_DECREF(flag);
    }
    Py_DECREF(node);
    return 1;
}

/* Record on tensors and numbers. 1: the results are in `tensors` (new references); 0: Python must look; -1: an error.
   differentiable: 1, 0, or -1 if the operator is to be asked. */
static int record_tensors(Operation *o, PyObject *const *given, Py_ssize_t count, int differentiable, PyObject **tensors)
{
    int tracked = 0, done;
    PyObject *edges[MOST] = {NULL}, *plan = NULL;
    Py_ssize_t made = 0;
    if (!tape_ready || count < 1 || count > MOST || !may_record()) {
        return 0;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *x = given[k];
        o->given[k] = x;
        o->values[k] = NULL;
        o->count = k + 1;
        if (Py_IS_TYPE(x, tensor_type) || (letter_of(x) == NULL && PySet_Contains(tensor_types, (PyObject *)Py_TYPE(x)) == 1)) {
            PyObject *s = SLOT(x, at.tensor.s);
            if (SLOT(x, at.tensor.view) == Py_None && s != NULL && Py_IS_TYPE(s, storage_type)) {
                o->values[k] = Py_XNewRef(SLOT(s, at.storage.value));
            }
            else {
                o->values[k] = PyObject_CallMethodNoArgs(x, name_read);
                if (o->values[k] == NULL) {
                    return -1;
                }
            }
            if (o->values[k] == NULL || !Py_IS_TYPE(o->values[k], value_type)) {
                return 0;
            }
            tracked |= SLOT(x, at.tensor.rg) == Py_True;
        }
        else if (PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
    }
    if (tracked) {
        if (SLOT(main_mode, at.mode_enabled) != Py_True) {
            tracked = 0;
        }
        else if (differentiable < 0) {
            tracked = is_true(o->op, name_differentiable);
            if (tracked < 0) {
                return -1;
            }
        }
        else {
            tracked = differentiable;
        }
    }
    if (tracked) {
        for (Py_ssize_t k = 0; k < count; k++) {
            PyObject *x = given[k];
            if (o->values[k] == NULL || SLOT(x, at.tensor.rg) != Py_True) {
                edges[k] = Py_NewRef(Py_None);
            }
            else if (SLOT(x, at.tensor.view) == Py_None) {
                PyObject *edge = SLOT(x, at.tensor.gf);
                edges[k] = Py_NewRef(edge == NULL || edge == Py_None ? x : edge);
            }
            else {
                edges[k] = PyObject_CallMethodNoArgs(x, name_edge);
                if (edges[k] == NULL) {
                    done = -1;
                    goto finish;
                }
            }
        }
    }
    done = find(o);
    if (done != 1) {
        goto finish;
    }
    done = make_results(o);
    if (done != 1) {
        goto finish;
    }
    for (; made < o->results; made++) {
        tensors[made] = new_tensor(o->out[made]);
        if (tensors[made] == NULL) {
            done = -1;
            goto finish;
        }
    }
    if (tracked) {
        plan = plan_of(o, edges);
        if (plan == NULL) {
            done = -1;
            goto finish;
        }
        if (plan != Py_None) {
            done = hang(o, plan, edges, tensors);
            if (done != 1) {
                goto finish;
            }
        }
    }
    done = commit(o);
    if (done == 1 && plan != NULL && plan != Py_None && SLOT(main_trace, at.trace.taped) != Py_True) {
        PyObject *old = SLOT(main_trace, at.trace.taped);
        SLOT(main_trace, at.trace.taped) = Py_NewRef(Py_True);
        Py_XDECREF(old);
    }
    if (done == 1 && cut_if_long(o) < 0) {
        done = -1;
    }
finish:
    Py_XDECREF(plan);
    for (Py_ssize_t k = 0; k < count; k++) {
        Py_XDECREF(edges[k]);
    }
    if (done != 1) {
        while (made > 0) {
            Py_CLEAR(tensors[--made]);
        }
    }
    return done;
}

/* As `tensor/call.py` has it: one tensor, or with `many` a list. */
PyObject *apply(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    (void)self;
    PyObject *tensors[MOST], *result = NULL, *many = nargs > 3 ? args[3] : Py_False;
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (nargs == 3 && named == 1) {
        many = args[3]; /* the only name it can have */
    }
    int done = 0;
    if (nargs >= 3 && nargs + named <= 4 && (many == Py_True || many == Py_False) &&
        (PyTuple_CheckExact(args[2]) || PyList_CheckExact(args[2]))) {
        Operation o;
        begin(&o, args[0], args[1]);
        PyObject *operands = args[2];
        done = record_tensors(&o, PySequence_Fast_ITEMS(operands), PySequence_Fast_GET_SIZE(operands), -1, tensors);
        if (done == 1) {
            if (many == Py_True) {
                result = PyList_New(o.results);
            }
            for (Py_ssize_t k = 0; k < o.results; k++) {
                if (many == Py_True && result != NULL) {
                    PyList_SET_ITEM(result, k, tensors[k]);
                }
                else if (many == Py_False && k == 0) {
                    result = tensors[0];
                }
                else {
                    Py_DECREF(tensors[k]);
                }
            }
        }
        end(&o);
    }
    return done == 0 ? PyObject_Vectorcall(apply_general, args, nargs, names) : result;
}

/* ---------------------------------------------------------------- Operator: what generated functions call */

typedef struct {
    PyObject_HEAD
    PyObject *op;
    int differentiable;
    vectorcallfunc call;
} Operator;

/* operator(static arguments, *operands): the result, or None where the general path must look. */
static PyObject *operator_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Operator *operator = (Operator *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *tensors[MOST];
    if (nargs < 2 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "an Operator takes static arguments and operands");
        return NULL;
    }
    Operation o;
    begin(&o, operator->op, args[0]);
    int done = record_tensors(&o, args + 1, nargs - 1, operator->differentiable, tensors);
    if (done == 1) {
        for (Py_ssize_t k = 1; k < o.results; k++) {
            Py_DECREF(tensors[k]);
        }
    }
    end(&o);
    return done == 1 ? tensors[0] : done == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *operator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *op;
    int differentiable;
    static char *names[] = {"op", "differentiable", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Op", names, &op, &differentiable)) {
        return NULL;
    }
    Operator *self = (Operator *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->op = Py_NewRef(op);
        self->differentiable = differentiable;
        self->call = operator_call;
    }
    return (PyObject *)self;
}

static int operator_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Operator *)self)->op);
    return 0;
}

static int operator_clear(PyObject *self)
{
    Py_CLEAR(((Operator *)self)->op);
    return 0;
}

static void operator_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    operator_clear(self);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject operator_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "_torchlike_native.Operator",
    .tp_doc = PyDoc_STR("Operator(op, differentiable): called with static arguments and operands, it records the operation "
                        "and returns its first result, or returns None where Python code must look."),
    .tp_basicsize = sizeof(Operator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = operator_new,
    .tp_dealloc = operator_dealloc,
    .tp_traverse = operator_traverse,
    .tp_clear = operator_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Operator, call),
};
