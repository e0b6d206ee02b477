/* Attributes of modules: parameters, buffers and children are not in a module's `__dict__`, so Python raises and clears an
 * AttributeError and calls `Module.__getattr__` for each `self.weight`. Here that is two or three look-ups. */

#include "native.h"

static PyObject *name_getattr, *names_of_tables[3];

/* A new reference, or NULL; with an error or without. */
static PyObject *item(PyObject *dict, PyObject *name)
{
    PyObject *found = PyDict_GetItemWithError(dict, name);
    Py_XINCREF(found);
    return found;
}

static PyObject *module_attribute(PyObject *self, PyObject *name)
{
    PyObject *found, *fields;
    if (_PyType_Lookup(Py_TYPE(self), name) != NULL) {
        found = PyObject_GenericGetAttr(self, name);
        if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return found;
        }
        PyErr_Clear(); /* a property's: `__getattr__` is asked, as always */
        return PyObject_CallMethodOneArg(self, name_getattr, name);
    }
    fields = PyObject_GenericGetDict(self, NULL);
    if (fields == NULL) {
        return NULL;
    }
    found = item(fields, name);
    for (int k = 0; k < 3 && found == NULL && !PyErr_Occurred(); k++) {
        PyObject *table = item(fields, names_of_tables[k]);
        if (table == NULL) {
            break;
        }
        if (PyDict_CheckExact(table)) {
            found = item(table, name);
        } else {
            k = 3; /* a class of the user's: Python */
        }
        Py_DECREF(table);
    }
    Py_DECREF(fields);
    if (found != NULL || PyErr_Occurred()) {
        return found;
    }
    return PyObject_CallMethodOneArg(self, name_getattr, name);
}

PyObject *quick_attributes(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "quick_attributes(): a class is needed");
        return NULL;
    }
    if (name_getattr == NULL) {
        names_of_tables[0] = PyUnicode_InternFromString("_parameters");
        names_of_tables[1] = PyUnicode_InternFromString("_buffers");
        names_of_tables[2] = PyUnicode_InternFromString("_modules");
        name_getattr = PyUnicode_InternFromString("__getattr__");
        if (names_of_tables[0] == NULL || names_of_tables[1] == NULL || names_of_tables[2] == NULL ||
            name_getattr == NULL) {
            Py_CLEAR(name_getattr);
            return NULL;
        }
    }
    /* Python sets the slot again when `__getattr__` or `__getattribute__` of the class, or of one that it inherits from, is
     * assigned to. */
    ((PyTypeObject *)type)->tp_getattro = module_attribute;
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_NONE;
}
