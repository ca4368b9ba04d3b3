/*
 * gateway/connect.h: the managers that an app dials: their URLs, and one connector for each.
 */
#ifndef EW_GATEWAY_CONNECT_H
#define EW_GATEWAY_CONNECT_H

#include "endpoint/connector.h"
#include "observe/metrics.h"

struct ew__app_loop;
struct ew_app;

#define EW__CONNECTS_MAX 32

/* What a manager's URL says. */
typedef struct ew__manager_url {
    char host[256];      /* for the resolver: no brackets */
    char authority[280]; /* HOST:PORT */
    char path[1024];     /* path and query, "/" at least */
    uint16_t port;
    bool tls; /* wss:// */
} ew__manager_url;

/*
 * "ws://HOST[:PORT][/PATH][?QUERY]", also http://, and wss:// or https://. EW_OK; EW_EINVAL with a constant line for
 * people in *ret_problem.
 */
ew_err ew__manager_url_parse(const char *text, ew__manager_url *ret, const char **ret_problem);

typedef struct ew__app_connect {
    struct ew_app *app;
    ew__connector connector;
    ew__manager_url url;
    char text[1320]; /* the URL, in its usual spelling */
    ew__runtime_identity self;
    char *id; /* self.id */
    size_t id_size;
    bool made; /* the connector is initialised */
    void (*on_closed)(struct ew__app_loop *loop);
} ew__app_connect;

/* Makes the connectors on the loops, which do not run yet, and starts them. EW_OK or EW_ENOMEM. */
ew_err ew__app_connects_start(struct ew_app *app);
/* Frees those of a loop that has ended or never ran. */
void ew__app_connects_done(struct ew__app_loop *loop);
/* Of one loop, on its thread. */
size_t ew__app_connects_count(const struct ew__app_loop *loop);
void ew__app_connects_refresh(struct ew__app_loop *loop);
void ew__app_connects_drain(struct ew__app_loop *loop);
/* told is called for each of them, possibly at once; a second call only hurries. */
void ew__app_connects_close(struct ew__app_loop *loop, bool now, void (*told)(struct ew__app_loop *loop));
/* Adds what they have sent and received. Any thread. */
void ew__app_connects_measure(const struct ew_app *app, ew__metrics_extra *extra);
/* With the app. */
void ew__app_connects_free(struct ew_app *app);

#endif
