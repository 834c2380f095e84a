#include "transport/zmq_curve.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

bool kl_zmq_set_key(void *socket, const kl_key *key, bool is_master) {
    const int yes = 1;
    if (is_master)
        return zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes) == 0 &&
               zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->server_secret, KL_KEY_CHARS + 1) == 0 &&
               zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "kilter", strlen("kilter")) == 0;
    return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, key->server_public, KL_KEY_CHARS + 1) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, key->worker_public, KL_KEY_CHARS + 1) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->worker_secret, KL_KEY_CHARS + 1) == 0;
}

void *kl_zmq_gate_open(void *context) {
    void *gate = zmq_socket(context, ZMQ_REP);
    if (!gate)
        return NULL;
    const int none = 0;
    zmq_setsockopt(gate, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(gate, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(gate, ZMQ_SNDHWM, &none, sizeof none);
    if (zmq_bind(gate, "inproc://zeromq.zap.01") == 0)
        return gate;
    int code = errno;
    zmq_close(gate);
    errno = code;
    return NULL;
}

/* indices of the parts of a request; the parts are: version, request id, domain, address, identity,
 * mechanism, credentials (the client's public key) */
enum { REQUEST_ID = 1, MECHANISM = 5, CREDENTIALS = 6, REQUEST_PARTS = 7, PART_BYTES = 256, KEY_BYTES = 32 };

typedef struct request {
    char parts[REQUEST_PARTS][PART_BYTES];
    size_t sizes[REQUEST_PARTS];
    int count; /* number of parts received; parts after the first REQUEST_PARTS are counted but not stored */
} request;

static bool read_request(void *gate, request *r) {
    *r = (request){.count = 0};
    for (int more = 1; more; r->count++) {
        char spare[PART_BYTES];
        bool fits = r->count < REQUEST_PARTS;
        int size;
        while ((size = zmq_recv(gate, fits ? r->parts[r->count] : spare, PART_BYTES, ZMQ_DONTWAIT)) < 0)
            if (errno != EINTR)
                return false;
        if (fits)
            r->sizes[r->count] = size < PART_BYTES ? (size_t)size : PART_BYTES;
        size_t option_size = sizeof more;
        zmq_getsockopt(gate, ZMQ_RCVMORE, &more, &option_size);
    }
    return true;
}

static bool part_is(const request *r, int part, const void *bytes, size_t size) {
    return r->sizes[part] == size && memcmp(r->parts[part], bytes, size) == 0;
}

static bool is_a_worker(const request *r, const kl_key *key) {
    uint8_t expected[KEY_BYTES];
    return zmq_z85_decode(expected, key->worker_public) && r->count == REQUEST_PARTS &&
           part_is(r, MECHANISM, "CURVE", strlen("CURVE")) &&
           part_is(r, CREDENTIALS, expected, sizeof expected);
}

static void answer(void *gate, const request *r, bool welcome) {
    const char *const status = welcome ? "200" : "400", *const text = welcome ? "OK" : "not the workers' key";
    zmq_send(gate, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(gate, r->parts[REQUEST_ID], r->sizes[REQUEST_ID], ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(gate, status, 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(gate, text, strlen(text), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(gate, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT); /* the user id, which is empty */
    zmq_send(gate, "", 0, ZMQ_DONTWAIT);               /* the metadata, which are empty */
}

void kl_zmq_gate_serve(void *gate, const kl_key *key) {
    request r;
    while (gate && read_request(gate, &r))
        answer(gate, &r, is_a_worker(&r, key));
}
