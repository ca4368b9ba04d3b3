/*
 * gateway/telemetry.h: spans of an app's calls, sent to a telemetry server: joins observe/spans.h and
 * endpoint/exporter.h on each loop.
 */
#ifndef EW_GATEWAY_TELEMETRY_H
#define EW_GATEWAY_TELEMETRY_H

#include "endpoint/exporter.h"
#include "observe/spans.h"

struct ew__app_loop;
struct ew_app;

/* On each loop. */
typedef struct ew__app_tracing {
    ew__spans spans;
    ew__exporter exporter;
    ew__task aim_task;
    atomic_bool aim_sent;
    void (*on_closed)(struct ew__app_loop *loop);
} ew__app_tracing;

/* Of the app; aim and aimed change under its lock once it runs. */
typedef struct ew__app_telemetry {
    ew__export_target aim;
    bool aimed;
    bool own; /* the program said so: what peers push does not count */
    bool realtime;
    const char *problem; /* of the URL that the program gave; NULL: none */
    atomic_bool complained;
    ew__exporter_news news;
} ew__app_telemetry;

/* url NULL: none. A URL that cannot be used becomes a log line at the start. */
void ew__app_telemetry_configure(struct ew_app *app, const char *url, bool realtime);
/* After the loop's other observers. EW_OK or EW_ENOMEM. */
ew_err ew__app_telemetry_init(struct ew__app_loop *loop);
/* Lets what is queued leave for a short time, if the server is there; then on_closed. A second call: at once. */
void ew__app_telemetry_close(struct ew__app_loop *loop, void (*on_closed)(struct ew__app_loop *loop));
void ew__app_telemetry_done(struct ew__app_loop *loop);
/* Any thread. */
void ew__app_telemetry_count(const struct ew_app *app, uint64_t *ret_exported, uint64_t *ret_dropped);
/*
 * A peer (a reflection manager) names a telemetry server: it is used if it is on this machine and the program named
 * none. Any thread, while the app runs.
 */
void ew__app_telemetry_pushed(struct ew_app *app, ew_str url);

#endif
