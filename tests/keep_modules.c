/* Prevent Open MPI's modules from being unloaded at the end. This library is preloaded into ranks of tests
 * under the address sanitizer. When a module was unloaded, the sanitizer can neither name its functions
 * nor suppress its leaks. */
__attribute__((visibility("default"))) int dlclose(void *handle);

int dlclose(void *handle) {
    (void)handle;
    return 0;
}
