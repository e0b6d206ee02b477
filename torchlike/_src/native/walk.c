/* A backward pass over a graph of plain operators: `autograd/walk.py` (`_run`) without hooks, custom functions, packed saved
   values, wanted inputs or create_graph. The graph is looked at first; one with anything of these is left to Python. */

#include "native.h"

typedef struct {
    PyObject *object; /* strong: a node, or a leaf tensor */
    long long seq;
    Py_ssize_t waiting; /* edges over which a gradient has yet to come */
    Py_ssize_t outs;    /* results, one gradient each */
    int leaf, python;   /* python: its own `pull` is called */
    PyObject *one, **more; /* strong, NULL while there is none: the gradients; `more` where there are several */
} Item;

typedef struct {
    Item *items;
    Py_ssize_t count, room;
    Py_ssize_t *table; /* open addressing: index of an item + 1 */
    size_t slots;
    Py_ssize_t *heap; /* items that are ready, the one made last on top */
    Py_ssize_t ready;
} Walk;

static void walk_end(Walk *w)
{
    for (Py_ssize_t k = 0; k < w->count; k++) {
        Item *item = &w->items[k];
        Py_XDECREF(item->one);
        for (Py_ssize_t j = 0; item->more != NULL && j < item->outs; j++) {
            Py_XDECREF(item->more[j]);
        }
        PyMem_Free(item->more);
        Py_DECREF(item->object);
    }
    PyMem_Free(w->items);
    PyMem_Free(w->table);
    PyMem_Free(w->heap);
}

static size_t place_of(Walk *w, PyObject *object)
{
    size_t slot = ((uintptr_t)object >> 4) * (size_t)0x9E3779B97F4A7C15u >> 20;
    for (slot &= w->slots - 1;; slot = (slot + 1) & (w->slots - 1)) {
        if (w->table[slot] == 0 || w->items[w->table[slot] - 1].object == object) {
            return slot;
        }
    }
}

static int grow(Walk *w)
{
    Py_ssize_t room = w->room ? 2 * w->room : 64;
    Item *items = PyMem_Realloc(w->items, room * sizeof(Item));
    if (items != NULL) {
        w->items = items;
    }
    Py_ssize_t *table = PyMem_Calloc(2 * room, sizeof(Py_ssize_t));
    if (items == NULL || table == NULL) {
        PyMem_Free(table);
        PyErr_NoMemory();
        return -1;
    }
    PyMem_Free(w->table);
    w->table = table;
    w->slots = 2 * room;
    w->room = room;
    for (Py_ssize_t k = 0; k < w->count; k++) {
        w->table[place_of(w, w->items[k].object)] = k + 1;
    }
    return 0;
}

/* Whether a saved tuple holds values and numbers as they were saved. */
static int is_intact(PyObject *saved)
{
    if (saved == NULL || !PyTuple_CheckExact(saved)) {
        return 0;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(saved); k++) {
        PyObject *item = PyTuple_GET_ITEM(saved, k);
        if (!PyTuple_CheckExact(item) || PyTuple_GET_SIZE(item) != 3) {
            return 0;
        }
        PyObject *value = PyTuple_GET_ITEM(item, 0), *storage = PyTuple_GET_ITEM(item, 1);
        if (!Py_IS_TYPE(value, value_type) && letter_of(value) == NULL) {
            return 0;
        }
        if (storage != Py_None) {
            PyObject *version = SLOT(storage, at.storage.version), *then = PyTuple_GET_ITEM(item, 2);
            if (version != then && PyObject_RichCompareBool(version, then, Py_EQ) != 1) {
                return 0;
            }
        }
    }
    return 1;
}

/* 1 if the object has nothing (None, an empty table) under this name, else 0; -1 with an error. */
static int is_without(PyObject *object, PyObject *name)
{
    int truth = is_true(object, name);
    return truth < 0 ? -1 : !truth;
}

/* Fill in what an item is: 1; 0 if it is not plain; -1 with an error. */
static int classify(Item *item)
{
    PyObject *object = item->object;
    PyTypeObject *type = Py_TYPE(object);
    if (!PyType_IsSubtype(type, base_node_type)) {
        item->leaf = 1;
        item->outs = 1;
        if (type != tensor_type && PySet_Contains(tensor_types, (PyObject *)type) != 1) {
            return PyErr_Occurred() ? -1 : 0;
        }
        int without = is_without(object, name_hooks);
        without = without == 1 ? is_without(object, name_accumulate_hooks) : without;
        return without == 1 ? is_without(object, name_post_accumulate_hooks) : without;
    }
    if (type != node_type) { /* a class that only carries the operator's name, or one with a `pull` of its own? */
        if (!PyType_IsSubtype(type, node_type)) {
            return 0;
        }
        PyObject *pull = PyObject_GetAttr((PyObject *)type, name_pull);
        if (pull == NULL) {
            return -1;
        }
        Py_DECREF(pull);
        if (pull != op_pull) {
            return 0;
        }
    }
    PyObject *plan = SLOT(object, at.node.plan), *kernel = SLOT(plan, at.plan.kernel);
    if (SLOT(object, at.node.extra) != Py_None || !Py_IS_TYPE(kernel, kernel_type) ||
        !PyTuple_CheckExact(SLOT(object, at.node.edges)) || !is_intact(SLOT(object, at.node.saved))) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *outs = SLOT(kernel, at.kernel_outs);
    if (!PyTuple_CheckExact(outs) && !PyList_CheckExact(outs)) {
        return 0;
    }
    item->outs = PySequence_Fast_GET_SIZE(outs);
    item->python = SLOT(plan, at.plan.whole) == Py_True;
    item->seq = PyLong_AsLongLong(SLOT(object, at.node.seq));
    return PyErr_Occurred() ? -1 : 1;
}

static PyObject *target_of(PyObject *edge)
{
    return Py_IS_TYPE(edge, edge_type) ? SLOT(edge, at.edge_node) : edge;
}

static Item *item_of(Walk *w, PyObject *edge)
{
    return &w->items[w->table[place_of(w, target_of(edge))] - 1];
}

/* One more gradient will come over this edge: 1; 0 if it leads to something that is not plain; -1 with an error. */
static int expect(Walk *w, PyObject *edge)
{
    PyObject *object = target_of(edge);
    if (w->count == w->room && grow(w) < 0) {
        return -1;
    }
    size_t slot = place_of(w, object);
    if (w->table[slot] != 0) {
        w->items[w->table[slot] - 1].waiting++;
        return 1;
    }
    Item *item = &w->items[w->count];
    memset(item, 0, sizeof(Item));
    item->object = Py_NewRef(object);
    item->waiting = 1;
    w->table[slot] = ++w->count;
    int plain = classify(item);
    if (plain == 1 && item->outs > 1) {
        item->more = PyMem_Calloc(item->outs, sizeof(PyObject *));
        if (item->more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return plain;
}

static void push(Walk *w, Py_ssize_t index)
{
    Py_ssize_t k = w->ready++;
    while (k > 0 && w->items[w->heap[(k - 1) / 2]].seq < w->items[index].seq) {
        w->heap[k] = w->heap[(k - 1) / 2];
        k = (k - 1) / 2;
    }
    w->heap[k] = index;
}

static Py_ssize_t pop(Walk *w)
{
    Py_ssize_t top = w->heap[0], last = w->heap[--w->ready], k = 0;
    for (;;) {
        Py_ssize_t child = 2 * k + 1;
        if (child >= w->ready) {
            break;
        }
        if (child + 1 < w->ready && w->items[w->heap[child + 1]].seq > w->items[w->heap[child]].seq) {
            child++;
        }
        if (w->items[w->heap[child]].seq <= w->items[last].seq) {
            break;
        }
        w->heap[k] = w->heap[child];
        k = child;
    }
    w->heap[k] = last;
    return top;
}

/* Record on Values and numbers, known or not; the results as a new list or tuple of `count`. */
static PyObject *pull_by(PyObject *op, PyObject *const *operands, Py_ssize_t count)
{
    PyObject *result = NULL;
    Operation o;
    begin(&o, op, empty_tuple);
    int done = record_values(&o, operands, count);
    if (done == 1) {
        result = PyTuple_New(o.results);
        for (Py_ssize_t k = 0; result != NULL && k < o.results; k++) {
            PyTuple_SET_ITEM(result, k, Py_NewRef(o.out[k]));
        }
    }
    end(&o);
    if (done == 0) {
        PyObject *all = PyTuple_New(count);
        for (Py_ssize_t k = 0; all != NULL && k < count; k++) {
            PyTuple_SET_ITEM(all, k, Py_NewRef(operands[k]));
        }
        if (all != NULL) {
            result = PyObject_CallFunctionObjArgs(record_general, op, empty_tuple, all, NULL);
            Py_DECREF(all);
        }
    }
    return result;
}

/* A gradient goes over an edge: it is kept, or added to what has come already. */
static int send(Walk *w, PyObject *edge, PyObject *gradient)
{
    Item *item = item_of(w, edge);
    PyObject **slot = &item->one;
    if (item->more != NULL) {
        Py_ssize_t nr = Py_IS_TYPE(edge, edge_type) ? PyLong_AsSsize_t(SLOT(edge, at.edge_nr)) : 0;
        if (nr < 0 || nr >= item->outs) {
            PyErr_SetString(PyExc_RuntimeError, "an edge leads to a result that its node has not");
            return -1;
        }
        slot = &item->more[nr];
    }
    if (gradient == Py_None) {
        return 0;
    }
    if (*slot == NULL) {
        *slot = Py_NewRef(gradient);
        return 0;
    }
    PyObject *both[2] = {*slot, gradient};
    PyObject *sum = pull_by(add_kernel, both, 2);
    if (sum == NULL) {
        return -1;
    }
    PyObject *total = Py_XNewRef(PySequence_Fast_GET_ITEM(sum, 0));
    Py_DECREF(sum);
    Py_SETREF(*slot, total);
    return 0;
}

/* leaf.grad becomes, or grows by, the gradient. */
static int accumulate(PyObject *leaf, PyObject *gradient)
{
    PyObject *grad = PyObject_GetAttr(leaf, name_grad);
    if (grad == NULL) {
        return -1;
    }
    Py_DECREF(grad);
    if (grad == Py_None) {
        PyObject *made = new_tensor(gradient);
        int failed = made == NULL || PyObject_SetAttr(leaf, name_grad, made) < 0;
        Py_XDECREF(made);
        return failed ? -1 : 0;
    }
    PyObject *done = PyObject_CallFunctionObjArgs(accumulate_general, leaf, gradient, Py_False, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* An edge has been used: its target may be ready. */
static int arrived(Walk *w, PyObject *edge)
{
    Item *item = item_of(w, edge);
    if (--item->waiting > 0) {
        return 0;
    }
    if (!item->leaf) {
        push(w, item - w->items);
        return 0;
    }
    PyObject *gradient = item->one;
    item->one = NULL;
    int failed = gradient != NULL && accumulate(item->object, gradient) < 0;
    Py_XDECREF(gradient);
    return failed ? -1 : 0;
}

/* The gradients of a node's operands, from what it has received: a list or tuple. */
static PyObject *pull(Item *item, PyObject **received, PyObject *keep, int keeps)
{
    PyObject *node = item->object, *plan = SLOT(node, at.node.plan), *saved = SLOT(node, at.node.saved);
    Py_ssize_t count = 0, given = 0;
    for (Py_ssize_t k = 0; k < item->outs; k++) {
        given += received[k] != NULL;
    }
    if (!PyTuple_CheckExact(saved)) {
        saved = empty_tuple; /* freed since it was looked at: Python has the error */
        given = -1;
    }
    if (item->python || given != item->outs || PyTuple_GET_SIZE(saved) + item->outs > MOST) {
        PyObject *list = PyList_New(item->outs), *pulled = NULL;
        for (Py_ssize_t k = 0; list != NULL && k < item->outs; k++) {
            PyList_SET_ITEM(list, k, Py_NewRef(received[k] == NULL ? Py_None : received[k]));
        }
        if (list != NULL) {
            pulled = PyObject_CallMethodObjArgs(node, name_pull, list, keep, NULL);
            Py_DECREF(list);
        }
        if (pulled != NULL) {
            Py_SETREF(pulled, PySequence_Fast(pulled, "pull() returns a sequence"));
        }
        return pulled;
    }
    PyObject *operands[MOST];
    Py_INCREF(saved);
    for (; count < PyTuple_GET_SIZE(saved); count++) {
        operands[count] = PyTuple_GET_ITEM(PyTuple_GET_ITEM(saved, count), 0);
    }
    for (Py_ssize_t k = 0; k < item->outs; k++) {
        operands[count++] = received[k];
    }
    if (!keeps && PyTuple_GET_SIZE(saved)) {
        Py_SETREF(SLOT(node, at.node.saved), Py_NewRef(Py_None));
    }
    PyObject *op = Py_NewRef(SLOT(plan, at.plan.pull));
    PyObject *pulled = pull_by(op, operands, count);
    Py_DECREF(op);
    Py_DECREF(saved);
    return pulled;
}

/* One node: its gradients are computed and sent on. */
static int visit(Walk *w, Py_ssize_t index, PyObject *keep, int keeps)
{
    Item *item = &w->items[index]; /* no item is added any more: it stays where it is */
    PyObject **received = item->more != NULL ? item->more : &item->one, *pulled = NULL;
    int any = 0, failed = 0;
    for (Py_ssize_t k = 0; k < item->outs; k++) {
        any |= received[k] != NULL;
    }
    if (any) {
        pulled = pull(item, received, keep, keeps);
        if (pulled == NULL) {
            return -1;
        }
        for (Py_ssize_t k = 0; k < item->outs; k++) {
            Py_CLEAR(received[k]);
        }
    }
    PyObject *edges = Py_NewRef(SLOT(item->object, at.node.edges));
    Py_ssize_t next = 0;
    for (Py_ssize_t k = 0; pulled != NULL && k < PyTuple_GET_SIZE(edges); k++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, k);
        if (edge == Py_None) {
            continue;
        }
        if (next >= PySequence_Fast_GET_SIZE(pulled)) {
            next++;
            break;
        }
        if (send(w, edge, PySequence_Fast_GET_ITEM(pulled, next++)) < 0) {
            failed = 1;
            break;
        }
    }
    if (!failed && pulled != NULL && next != PySequence_Fast_GET_SIZE(pulled)) {
        PyErr_SetString(PyExc_RuntimeError, "a node has another number of gradients than of operands that need one");
        failed = 1;
    }
    Py_XDECREF(pulled);
    for (Py_ssize_t k = 0; !failed && k < PyTuple_GET_SIZE(edges); k++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, k);
        failed = edge != Py_None && arrived(w, edge) < 0;
    }
    Py_DECREF(edges);
    return failed ? -1 : 0;
}

/* Look at the whole graph: 1 if it is plain, 0 if not, -1 with an error. */
static int collect(Walk *w, PyObject *roots)
{
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(roots); k++) {
        int plain = expect(w, PySequence_Fast_GET_ITEM(roots, k));
        if (plain != 1) {
            return plain;
        }
    }
    for (Py_ssize_t next = 0; next < w->count; next++) {
        if (w->items[next].leaf) {
            continue;
        }
        PyObject *edges = SLOT(w->items[next].object, at.node.edges);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(edges); k++) {
            PyObject *edge = PyTuple_GET_ITEM(edges, k);
            int plain = edge == Py_None ? 1 : expect(w, edge);
            if (plain != 1) {
                return plain;
            }
        }
    }
    w->heap = PyMem_Malloc((w->count + 1) * sizeof(Py_ssize_t));
    if (w->heap == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 1;
}

/* walk(edges, gradients, keep, cross, bound): True; False if the graph is not plain, and nothing has been done. */
PyObject *walk(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 5 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]) ||
        PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1])) {
        PyErr_SetString(PyExc_TypeError, "walk(edges, gradients, keep, cross, bound)");
        return NULL;
    }
    PyObject *roots = args[0], *gradients = args[1], *keep = args[2], *cross = args[3];
    int keeps = PyObject_IsTrue(keep);
    long long bound = PyLong_AsLongLong(args[4]);
    if (keeps < 0 || PyErr_Occurred()) {
        return NULL;
    }
    if (!tape_ready || !may_record()) {
        Py_RETURN_FALSE;
    }
    Walk w = {0};
    int done = collect(&w, roots);
    for (Py_ssize_t k = 0; done == 1 && k < PyList_GET_SIZE(roots); k++) {
        done = send(&w, PyList_GET_ITEM(roots, k), PyList_GET_ITEM(gradients, k)) < 0 ? -1 : 1;
    }
    for (Py_ssize_t k = 0; done == 1 && k < PyList_GET_SIZE(roots); k++) {
        done = arrived(&w, PyList_GET_ITEM(roots, k)) < 0 ? -1 : 1;
    }
    while (done == 1 && w.ready > 0) {
        Py_ssize_t index = pop(&w);
        long long seq = w.items[index].seq;
        if (seq < bound) {
            PyObject *number = PyLong_FromLongLong(seq);
            PyObject *next = number == NULL ? NULL : PyObject_CallOneArg(cross, number);
            Py_XDECREF(number);
            bound = next == NULL ? 0 : PyLong_AsLongLong(next);
            Py_XDECREF(next);
            if (PyErr_Occurred()) {
                done = -1;
                break;
            }
        }
        done = visit(&w, index, keep, keeps) < 0 ? -1 : 1;
    }
    walk_end(&w);
    return done < 0 ? NULL : Py_NewRef(done == 1 ? Py_True : Py_False);
}
