/* What the files of the extension module share. See recorder.c. */

#ifndef TORCHLIKE_NATIVE_H
#define TORCHLIKE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define ABI 2
#define MOST 12  /* operands and results of an operation on tensors; with more, Python */
#define MANY 256 /* the same for one on Values: an optimizer's step */

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b)) /* NaN wins, as in NumPy's maximum */
#define HIDDEN __attribute__((visibility("hidden")))

/* The Python objects that `configure_recorder` and `configure_tape` are given, and names. */
#define OBJECTS(_)                                                                                                        \
    _(main_trace) _(slow) _(plain_types) _(record_general) _(apply_general) _(check_length) _(grad_plan) _(tensor_types)  \
    _(main_mode) _(sequence) _(add_kernel) _(op_pull) _(accumulate_general) _(empty_tuple) _(zero) _(letter_f)            \
    _(letter_i) _(letter_b) _(letter_c) _(name_read) _(name_edge) _(name_is_inference) _(name_differentiable)             \
    _(name_floating) _(name_complex) _(name_pull) _(name_grad) _(name_hooks) _(name_accumulate_hooks)        \
    _(name_post_accumulate_hooks)
#define DECLARE_OBJECT(name) extern HIDDEN PyObject *name;
OBJECTS(DECLARE_OBJECT)
extern HIDDEN PyTypeObject *value_type, *tensor_type, *storage_type, *node_type, *edge_type, *base_node_type, *kernel_type;
extern HIDDEN PyTypeObject operator_type, elements_type;
extern HIDDEN int recorder_ready, tape_ready;

/* Where the slots of the Python classes are: Value, Trace, TreeNode, Tensor, Storage, OpNode and Node, GradPlan. */
typedef struct {
    struct {
        Py_ssize_t array, aval, epoch, index;
    } value;
    struct {
        Py_ssize_t busy, complexes, epoch, floats, ints, leaves, node, taped, values;
    } trace;
    struct {
        Py_ssize_t bound, children, grad_plans, index, kernel, key, last, outs;
    } tree;
    struct {
        Py_ssize_t aval, gf, rg, s, view;
    } tensor;
    struct {
        Py_ssize_t value, version;
    } storage;
    struct {
        Py_ssize_t edges, extra, plan, saved, seq;
    } node;
    struct {
        Py_ssize_t inputs, kernel, outputs, pull, saves, whole;
    } plan;
    Py_ssize_t mode_enabled, edge_node, edge_nr, aval_dtype, kernel_outs;
} Offsets;
extern HIDDEN Offsets at;

/* An operation on its way into the trace. */
typedef struct {
    PyObject *op, *statics;   /* borrowed */
    PyObject *parent, *epoch; /* strong: where the trace was */
    PyObject *node;           /* strong: the operation's place in the tree */
    Py_ssize_t count, results, room; /* room: for how many operands, and how many results */
    PyObject **given;  /* borrowed: tensors, Values or numbers */
    PyObject **values; /* strong: Values; NULL for a number */
    PyObject **parts;  /* borrowed: the Aval of a new leaf, a number's letter, or NULL: see `indices` */
    PyObject **out;    /* strong: the results */
    Py_ssize_t *indices;
    char *fresh; /* whether the operand becomes a leaf */
    void *more;  /* their memory, if MOST do not suffice */
    PyObject *here[4 * MOST];
    Py_ssize_t indices_here[MOST];
    char fresh_here[MOST];
} Operation;

HIDDEN void begin(Operation *, PyObject *op, PyObject *statics);
HIDDEN void end(Operation *);
HIDDEN int may_record(void);
HIDDEN PyObject *letter_of(PyObject *);
HIDDEN int find(Operation *);
HIDDEN int make_results(Operation *);
HIDDEN int commit(Operation *);
HIDDEN int cut_if_long(Operation *);
HIDDEN int record_values(Operation *, PyObject *const *given, Py_ssize_t count);
HIDDEN int is_true(PyObject *object, PyObject *name);
HIDDEN PyObject *new_tensor(PyObject *value);

HIDDEN PyObject *apply(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
HIDDEN PyObject *configure_arguments(PyObject *, PyObject *);
HIDDEN PyObject *static_argument(PyObject *, PyObject *);
HIDDEN PyObject *normals(PyObject *, PyObject *);
HIDDEN PyObject *max_pool(PyObject *, PyObject *);
HIDDEN PyObject *quick_attributes(PyObject *, PyObject *);
HIDDEN PyObject *walk(PyObject *, PyObject *const *, Py_ssize_t);

#endif
