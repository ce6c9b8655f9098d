// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Main of every trainer: options, device, data and memory, then the run.
#define _POSIX_C_SOURCE 200809L

#include "base/standard.h"
#include "runtime/cuda/kernels/kernels.h"
#include "runtime/cuda/nccl.h"
#include "runtime/host/host.h"
#include "runtime/report/nvtx.h"
#include "runtime/session/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// An estimate: states have a fixed size, the rest grows with the batch.
static double batch_that_fits(const RtTrainer *t, const RtPlan *plan,
                              const RtDevice *d, double need, double have) {
    double fixed = 0;
    for (int i = 0; i < plan->num_states; i++)
        if (rt_device_holds(d, plan->state[i].offset))
            fixed += (double)rt_state_bytes(&plan->state[i]);
    double batch = t->batch * (have - fixed) / (need - fixed);
    return batch < 0 ? 0 : batch;
}

static bool fits(const RtTrainer *t, const RtPlan *plan, RtDevice *d,
                 RtError *e) {
    const double mib = 1 << 20;
    size_t need = d->needed(d), have = d->available(d);
    if (need <= have)
        return true;
    int batch = (int)batch_that_fits(t, plan, d, (double)need, (double)have);
    char advice[80] = "no batch would fit";
    if (batch > 0)
        snprintf(advice, sizeof advice, "a batch of about %d would fit", batch);
    return rt_fail(e, EXIT_MEMORY,
                   "a batch of %d needs %.0f MiB of memory on %s, but only "
                   "%.0f MiB are free; %s",
                   t->batch, (double)need / mib, d->name, (double)have / mib,
                   advice);
}

// The host's memory for loading and for ranked rows, beside the plan's.
static bool loading_fits(const RtRun *run, RtError *e) {
    const double mib = 1 << 20;
    const RtDevice *d = run->device;
    bool shares = d != NULL && strcmp(d->name, "host") == 0;
    size_t plan = shares ? d->needed(run->device) : 0;
    size_t need = rt_loading_bytes(run), have = rt_memory_available();
    size_t scores = rt_scores_bytes(run);
    have = have > plan ? have - plan : 0;
    if (__builtin_add_overflow(need, scores, &need))
        need = SIZE_MAX;
    if (need <= have)
        return true;
    return rt_fail(
        e, EXIT_MEMORY, "%s %.0f MiB of memory, but only %.0f MiB are free%s%s",
        scores > 0 ? "loading and the metric auc need" : "loading needs",
        (double)need / mib, (double)have / mib,
        shares ? " beside the plan" : "",
        run->data->decode_memory != NULL
            ? "; lower --loaders or --max-image-pixels"
            : "");
}

// The data set is read while a GPU's driver and libraries open.  The host's
// oneDNN chooses by free memory, so there the data are read afterwards.
typedef struct {
    const RtRun *run;
    RtData data;
    bool good;
    RtError e;
    bool concurrent;
    pthread_t thread;
} DataReader;

static void *read_data(void *arg) {
    DataReader *r = arg;
    const RtRun *run = r->run;
    r->good =
        rt_data_find(run->trainer, run->options, &r->data, run->files, &r->e);
    return NULL;
}

static void data_reader_start(DataReader *r, const RtRun *run) {
    RtError e;
    const RtPlan *plan = rt_device_plan(run->trainer, run->options, &e);
    *r = (DataReader){.run = run};
    r->concurrent = plan != NULL && strcmp(plan->device, "cuda") == 0 &&
                    pthread_create(&r->thread, NULL, read_data, r) == 0;
}

static bool data_reader_join(DataReader *r, RtError *e) {
    if (r->concurrent)
        pthread_join(r->thread, NULL);
    else
        read_data(r);
    if (!r->good)
        *e = r->e;
    return r->good;
}

static bool trains(const RtOptions *o) {
    return !o->eval_only && !o->init_only && !o->tune;
}

static bool run_on(RtRun *run, RtFolder *folder, int *caught, RtError *e) {
    RtDevice *d = run->device;
    if (trains(run->options) && rt_lockstep_needed(run->plan))
        d->shards = run->trainer->shards / rt_world_size(run->world);
    if (!fits(run->trainer, run->plan, d, e) || !loading_fits(run, e) ||
        !rt_folder_make(folder, run->trainer, run->options, e))
        return false;
    run->folder = folder->path;
    d->reserve(d);
    rt_lap(run->laps, RT_START_MEMORY);
    bool good = rt_resident_keep(run, e);
    rt_lap(run->laps, RT_START_IMAGES);
    return good && rt_run(run, caught, e);
}

// No device is opened; --device only decides the number of loading threads.
static bool load_only(RtRun *run, RtError *e) {
    RtData data;
    run->plan = rt_device_plan(run->trainer, run->options, e);
    if (run->plan == NULL ||
        !rt_data_find(run->trainer, run->options, &data, run->files, e))
        return false;
    run->data = &data;
    rt_lap(run->laps, RT_START_DATA);
    bool good = loading_fits(run, e) && rt_load_only(run, e);
    rt_data_close(&data);
    return good;
}

static int show(const RtTrainer *t, const RtOptions *o, const char *program) {
    if (o->help)
        rt_options_help(t, program);
    else
        printf("%s, compiled by sinter %s\n", t->model, t->version);
    return fflush(stdout) == 0 ? EXIT_GOOD : EXIT_IO;
}

// Prints facts about the trainer, without device and data.
static int inspect(const RtTrainer *t, const RtOptions *o) {
    RtError e;
    const RtPlan *plan = rt_device_plan(t, o, &e);
    if (plan == NULL ||
        (o->dump_cuda != NULL &&
         !rt_source_files_write(t, o->dump_cuda, &rt_system_files, &e)))
        return rt_print_error(&e);
    bool good = (!o->list_kernels || rt_list_kernels(plan)) &&
                (!o->print_plan || rt_list_plan(plan, o->resident));
    return good ? EXIT_GOOD : EXIT_IO;
}

static bool load_cuda_text(RtSourceFiles *text, const RtTrainer *t,
                           const RtOptions *o, RtError *e) {
    const RtPlan *plan = rt_device_plan(t, o, e);
    if (plan == NULL)
        return false;
    if (strcmp(plan->device, "cuda") != 0)
        return rt_fail(e, EXIT_USAGE,
                       "--load-cuda needs --device=cuda; kernels of the host "
                       "are compiled with the trainer: edit the output of "
                       "sinter build --emit=c for them");
    return rt_source_files_read(text, t, o->load_cuda, &rt_system_files, e);
}

static bool has_decoder(const RtRun *run, RtError *e) {
    return run->device->decode_jpeg != NULL ||
           strcmp(run->options->decode, "nvjpeg") != 0 ||
           rt_fail(e, EXIT_USAGE,
                   "--decode=nvjpeg needs a GPU, but the device is %s",
                   run->device->name);
}

// A device error is reported before a data error and does not wait for the
// data, which may take minutes: the program ends while a thread reads.
static bool on_device(RtRun *run, RtFolder *folder, int *caught, RtError *e) {
    const RtOptions *o = run->options;
    DataReader reading;
    data_reader_start(&reading, run);
    run->device = rt_device_open(run->trainer, o, &run->plan, run->laps, e);
    bool good =
        run->device != NULL && rt_without_check(o->without, run->device, e) &&
        has_decoder(run, e) && rt_world_join(run->world, run->device, e) &&
        rt_owners_open(&run->owners, run->world, run->plan, run->device, e);
    rt_lap(run->laps, RT_START_DEVICE);
    if (!good && reading.concurrent)
        rt_leave(rt_print_error(e));
    good = good && data_reader_join(&reading, e);
    rt_lap(run->laps, RT_START_DATA);
    if (good) {
        run->device->nvtx = run->nvtx;
        run->device->profile = run->trace;
        run->data = &reading.data;
        rt_decode_memory_set_device(reading.data.decode_memory, run->device);
        good = run_on(run, folder, caught, e);
    }
    if (reading.good)
        rt_data_close(&reading.data);
    rt_owners_close(run->owners);
    bool idle = rt_world_leave(run->world, good);
    if (run->device != NULL && idle)
        run->device->close(run->device);
    return good;
}

static bool uses_weights(const RtOptions *o) {
    return o->predict != NULL || o->generate != NULL;
}

// --predict opens its inputs later; --generate has none.
static bool predict_on_device(RtRun *run, int *caught, RtError *e) {
    const RtOptions *o = run->options;
    RtDevice *d = rt_device_open(run->trainer, o, &run->plan, run->laps, e);
    if (d == NULL)
        return false;
    run->device = d;
    d->nvtx = run->nvtx;
    d->predicts = true;
    bool good = rt_without_check(o->without, d, e) && has_decoder(run, e) &&
                rt_world_join(run->world, d, e) &&
                fits(run->trainer, run->plan, d, e);
    if (good) {
        d->reserve(d);
        good = o->generate != NULL ? rt_generate(run, caught, e)
                                   : rt_predict(run, caught, e);
    }
    rt_world_leave(run->world, good);
    d->close(d);
    return good;
}

static bool open_and_run(RtRun *run, RtFolder *folder, int *caught,
                         RtError *e) {
    const char *profile = run->options->profile;
    RtNvtx nvtx;
    if (run->options->load_only)
        return load_only(run, e);
    if (!rt_nvtx_open(&nvtx, run->options->nvtx, e))
        return false;
    run->nvtx = &nvtx;
    if (profile != NULL)
        run->trace = rt_trace_new(profile);
    bool good = profile == NULL || run->trace != NULL ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good &&
           (uses_weights(run->options) ? predict_on_device(run, caught, e)
                                       : on_device(run, folder, caught, e));
    rt_trace_close(run->trace);
    rt_nvtx_close(&nvtx);
    return good;
}

static bool check_ranks(const RtOptions *o, const RtWorld *world, RtError *e) {
    const char *alone = o->generate != NULL ? "--generate"
                        : o->load_only      ? "--load-only"
                                            : NULL;
    return world == NULL || alone == NULL ||
           rt_fail(e, EXIT_USAGE, "%s is for one process, not for %d ranks",
                   alone, rt_world_size(world));
}

// Rank 0 alone prints and writes files.  A trainer whose shards are its ranks
// has as many batches in an update; a prediction has none.
static const RtTrainer *rank_begin(RtTrainer *to, const RtTrainer *from,
                                   RtOptions *o, const RtWorld *world) {
    *to = *from;
    if (from->shards == 1 && o->predict == NULL) {
        to->shards = rt_world_size(world);
        to->accumulate *= to->shards;
        // Such a run goes on with as many ranks.
        to->fingerprint += (uint64_t)to->shards;
    }
    o->rank = rt_world_rank(world);
    rt_warn_as_rank(o->rank);
    o->local_rank = rt_world_local_rank(world);
    if (o->rank == 0)
        return to;
    o->quiet = true;
    o->metrics = o->snapshot = o->times = o->tensorboard = NULL;
    // A trace launches one by one, as no rank does with NCCL unless all do.
    if (o->profile != NULL)
        o->profile = "/dev/null";
    if (freopen("/dev/null", "w", stdout) == NULL)
        rt_warn("standard output: %s", strerror(errno));
    return to;
}

// An error is reported when the device is opened.
static const RtGpuCollectives *gpus_of(const RtTrainer *t, const RtOptions *o) {
    RtError ignored;
    const RtPlan *plan = rt_device_plan(t, o, &ignored);
    return plan != NULL && strcmp(plan->device, "cuda") == 0 ? &rt_nccl : NULL;
}

int rt_main(int argc, char **argv, const RtTrainer *trainer) {
    standard_open();
    double began = rt_seconds();
    RtLaps laps = {.last = began};
    RtOptions o;
    RtError e = {0};
    int caught = 0;
    if (!rt_options_parse(&o, argc, argv, trainer, &e))
        return rt_print_error(&e);
    if (o.help || o.version)
        return show(trainer, &o, argc > 0 ? argv[0] : "trainer");
    if (o.list_kernels || o.print_plan || o.dump_cuda != NULL)
        return inspect(trainer, &o);
    rt_team_spin_briefly(argv);
    RtWorld *world;
    if (!rt_world_open(&world, trainer, &o, gpus_of, &e) ||
        !check_ranks(&o, world, &e)) {
        rt_world_close(world, false);
        return rt_print_error(&e);
    }
    RtTrainer shared;
    if (world != NULL)
        trainer = rank_begin(&shared, trainer, &o, world);
    RtSourceFiles text;
    if (o.load_cuda != NULL) {
        if (!load_cuda_text(&text, trainer, &o, &e))
            return rt_print_error(&e);
        trainer = &text.trainer;
    }
    RtReducedTrainer lesser;
    if (o.without != 0)
        trainer = rt_without_trainer(&lesser, trainer, o.without);
    rt_output_begin();
    RtRun run = {.trainer = trainer,
                 .options = &o,
                 .files = &rt_system_files,
                 .world = world,
                 .began = began,
                 .word = argv + 1,
                 .num_words = argc > 1 ? argc - 1 : 0,
                 .laps = &laps};
    RtFolder folder;
    bool good = rt_folder_find(&folder, trainer, &o, &e);
    run.folder = folder.path;
    good = good && open_and_run(&run, &folder, &caught, &e);
    int status = good ? EXIT_GOOD : rt_print_error(&e);
    rt_world_close(world, good);
    rt_folder_close(&folder);
    if (status == EXIT_GOOD && caught != 0)
        rt_signals_raise(caught);
    return status;
}
