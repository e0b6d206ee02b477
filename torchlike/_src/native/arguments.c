/* Static arguments in hashable form: `tensor/publish.py` (`static_argument`) for the usual types. */

#include "native.h"

#define MOST_FLOATS 10000

static PyObject *general, *float_type, *dtype_type, *floats; /* floats: {float: StaticFloat}, so that equal ones are one */

PyObject *configure_arguments(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given[3];
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2])) {
        return NULL;
    }
    if (floats == NULL && (floats = PyDict_New()) == NULL) {
        return NULL;
    }
    Py_XSETREF(general, Py_NewRef(given[0]));
    Py_XSETREF(float_type, Py_NewRef(given[1]));
    Py_XSETREF(dtype_type, Py_NewRef(given[2]));
    Py_RETURN_NONE;
}

PyObject *static_argument(PyObject *self, PyObject *value)
{
    (void)self;
    if (value == Py_None || PyLong_CheckExact(value) || PyBool_Check(value) || PyUnicode_CheckExact(value) ||
        (PyObject *)Py_TYPE(value) == dtype_type) {
        return Py_NewRef(value);
    }
    if (PyTuple_CheckExact(value)) {
        Py_ssize_t k = 0, size = PyTuple_GET_SIZE(value);
        while (k < size && PyLong_CheckExact(PyTuple_GET_ITEM(value, k))) {
            k++;
        }
        if (k == size) {
            return Py_NewRef(value);
        }
    }
    if (general == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure_arguments has not been called");
        return NULL;
    }
    double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : 0;
    if (number == 0 || number != number) { /* not a float, or one that equals another, or not itself */
        return PyObject_CallOneArg(general, value);
    }
    PyObject *found = PyDict_GetItemWithError(floats, value);
    if (found != NULL || PyErr_Occurred()) {
        return Py_XNewRef(found);
    }
    found = PyObject_CallOneArg(float_type, value);
    if (found != NULL) {
        if (PyDict_GET_SIZE(floats) >= MOST_FLOATS) {
            PyDict_Clear(floats);
        }
        if (PyDict_SetItem(floats, value, found) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}
