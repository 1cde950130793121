/*
 * One end of RDMA connections, in a virtual machine with the soft RoCE of Linux.
 *
 * Reads commands from its standard input, one a line, and answers each with one line:
 *
 *   region                            -> region ADDRESS KEY BYTES
 *   open FAMILY MTU READS PSN         -> open QP_NUMBER           FAMILY 4 or 6, MTU and READs in flight of the path
 *   connect QP_NUMBER PSN ADDRESS     -> connected
 *   fill SEED OFFSET BYTES            -> filled                   fills its memory with numbers from a seed
 *   check SEED OFFSET BYTES           -> same | differs OFFSET
 *   word OFFSET                       -> word VALUE               8 bytes of its memory, in the order of this machine
 *   post KIND COUNT OFFSET BYTES ADDRESS KEY [A B]
 *                                     -> done STATUS COMPLETED    KIND read, write, add or swap; COUNT in a row
 *   close                             -> closed
 *
 * An error of the system is answered with "error TEXT".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEMORY (4u << 20)
#define QUEUE 256

static struct ibv_context *context;
static struct ibv_pd *domain;
static struct ibv_mr *region;
static struct ibv_cq *completions;
static struct ibv_qp *qp;
static uint8_t *memory;
static int family, mtu, reads;
static uint32_t own_psn;

static void fail(const char *what)
{
	printf("error %s: %s\n", what, strerror(errno));
}

/* SplitMix64, as the crate `rng` has it. */
static uint64_t next_number(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15u;
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

/* Compares memory with numbers from a seed, or fills it with them. Returns the offset of the first difference. */
static long numbers(uint64_t seed, uint64_t offset, uint64_t length, int is_check)
{
	for (uint64_t at = 0; at < length; at++) {
		uint8_t expected = (uint8_t)next_number(&seed);
		if (!is_check)
			memory[offset + at] = expected;
		else if (memory[offset + at] != expected)
			return (long)(offset + at);
	}
	return -1;
}

static int is_inside(uint64_t offset, uint64_t length)
{
	return offset <= MEMORY && length <= MEMORY - offset;
}

/* Returns the index of the RoCEv2 address of a family, or -1. Link-local addresses have no route to the other end. */
static int address_index(void)
{
	struct ibv_gid_entry entries[64];
	ssize_t count = ibv_query_gid_table(context, entries, 64, 0);
	for (ssize_t i = 0; i < count; i++) {
		const uint8_t *raw = entries[i].gid.raw;
		static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
		int is_v4 = memcmp(raw, mapped, sizeof mapped) == 0;
		int is_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 && is_v4 == (family == 4) && !is_local)
			return (int)entries[i].gid_index;
	}
	return -1;
}

static enum ibv_mtu mtu_code(int bytes)
{
	return bytes >= 4096 ? IBV_MTU_4096 : bytes >= 2048 ? IBV_MTU_2048 : bytes >= 1024 ? IBV_MTU_1024 :
	       bytes >= 512 ? IBV_MTU_512 : IBV_MTU_256;
}

static void open_qp(const char *line)
{
	if (sscanf(line, "%d %d %d %" SCNu32, &family, &mtu, &reads, &own_psn) != 4)
		return (void)puts("error open: four numbers");
	struct ibv_qp_init_attr init = {
		.send_cq = completions, .recv_cq = completions, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = QUEUE, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	qp = ibv_create_qp(domain, &init);
	if (!qp)
		return fail("ibv_create_qp");
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return fail("to the state INIT");
	printf("open %" PRIu32 "\n", qp->qp_num);
}

static void connect_qp(const char *line)
{
	uint32_t number, psn;
	char text[64];
	if (!qp || sscanf(line, "%" SCNu32 " %" SCNu32 " %63s", &number, &psn, text) != 3)
		return (void)puts("error connect: an open queue pair, two numbers and an address");
	int index = address_index();
	if (index < 0)
		return (void)puts("error connect: no address of this family");
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu_code(mtu), .dest_qp_num = number, .rq_psn = psn,
		.max_dest_rd_atomic = (uint8_t)reads, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = (uint8_t)index, .hop_limit = 64 } },
	};
	uint8_t *raw = attr.ah_attr.grh.dgid.raw;
	if (family == 4)
		raw[10] = raw[11] = 0xff;
	if (inet_pton(family == 4 ? AF_INET : AF_INET6, text, family == 4 ? raw + 12 : raw) != 1)
		return (void)puts("error connect: not an address");
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return fail("to the state RTR");
	struct ibv_qp_attr send = {
		.qp_state = IBV_QPS_RTS, .sq_psn = own_psn, .timeout = 14, .rnr_retry = 7,
		/* No limit: soft RoCE counts every loss until a request completes. */
		.retry_cnt = 7, .max_rd_atomic = (uint8_t)reads,
	};
	if (ibv_modify_qp(qp, &send, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		return fail("to the state RTS");
	puts("connected");
}

/* Posts COUNT requests, each of the next BYTES at both ends, and waits for all of them, at most 20 s. */
static void post(const char *line)
{
	char kind[8];
	uint32_t count, key;
	uint64_t offset, length, address, a = 0, b = 0;
	int fields = sscanf(line, "%7s %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu64,
			    kind, &count, &offset, &length, &address, &key, &a, &b);
	if (!qp || fields < 6 || count == 0 || count > QUEUE || !is_inside(offset, 0) || length > MEMORY / count ||
	    !is_inside(offset, length * count))
		return (void)puts("error post: an open queue pair, and memory of its own");
	enum ibv_wr_opcode opcode = !strcmp(kind, "read") ? IBV_WR_RDMA_READ : !strcmp(kind, "write") ? IBV_WR_RDMA_WRITE :
				    !strcmp(kind, "add") ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
	int is_atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	for (uint32_t i = 0; i < count; i++) {
		struct ibv_sge local = {
			.addr = (uintptr_t)memory + offset + i * length, .length = (uint32_t)length, .lkey = region->lkey,
		};
		struct ibv_send_wr request = {
			.wr_id = i, .sg_list = &local, .num_sge = length ? 1 : 0, .opcode = opcode,
			.send_flags = IBV_SEND_SIGNALED,
		}, *bad;
		if (is_atomic) {
			request.wr.atomic.remote_addr = address + i * length;
			request.wr.atomic.rkey = key;
			request.wr.atomic.compare_add = a;
			request.wr.atomic.swap = b;
		} else {
			request.wr.rdma.remote_addr = address + i * length;
			request.wr.rdma.rkey = key;
		}
		if (ibv_post_send(qp, &request, &bad))
			return fail("ibv_post_send");
	}
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	uint32_t completed = 0, ended = 0;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	while (ended < count) {
		struct ibv_wc completion;
		int found = ibv_poll_cq(completions, 1, &completion);
		if (found < 0)
			return fail("ibv_poll_cq");
		if (found == 0) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			if (now.tv_sec - begin.tv_sec > 20)
				return (void)puts("error post: no completion for 20 s");
			continue;
		}
		ended++;
		if (completion.status == IBV_WC_SUCCESS)
			completed++;
		else if (status == IBV_WC_SUCCESS)
			status = completion.status;
	}
	printf("done %d %" PRIu32 "\n", status, completed);
}

static void close_qp(void)
{
	struct ibv_wc completion;
	if (qp)
		ibv_destroy_qp(qp);
	qp = NULL;
	while (ibv_poll_cq(completions, 1, &completion) > 0)
		;
	puts("closed");
}

static int begin(void)
{
	int count;
	struct ibv_device **devices = ibv_get_device_list(&count);
	if (!devices || count == 0)
		return fail("no RDMA device"), 1;
	context = ibv_open_device(devices[0]);
	domain = context ? ibv_alloc_pd(context) : NULL;
	completions = context ? ibv_create_cq(context, 2 * QUEUE, NULL, NULL, 0) : NULL;
	if (!domain || !completions || posix_memalign((void **)&memory, 4096, MEMORY))
		return fail("the RDMA device"), 1;
	memset(memory, 0, MEMORY);
	region = ibv_reg_mr(domain, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (!region)
		return fail("ibv_reg_mr"), 1;
	return 0;
}

int main(void)
{
	char line[256];
	uint64_t seed, offset, length, word;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (begin())
		return 1;
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		if (!strncmp(line, "region", 6)) {
			printf("region %" PRIu64 " %" PRIu32 " %u\n", (uint64_t)(uintptr_t)memory, region->rkey, MEMORY);
		} else if (!strncmp(line, "open ", 5)) {
			open_qp(line + 5);
		} else if (!strncmp(line, "connect ", 8)) {
			connect_qp(line + 8);
		} else if (!strncmp(line, "close", 5)) {
			close_qp();
		} else if (!strncmp(line, "post ", 5)) {
			post(line + 5);
		} else if (sscanf(line, "fill %" SCNu64 " %" SCNu64 " %" SCNu64, &seed, &offset, &length) == 3 &&
			   is_inside(offset, length)) {
			numbers(seed, offset, length, 0);
			puts("filled");
		} else if (sscanf(line, "check %" SCNu64 " %" SCNu64 " %" SCNu64, &seed, &offset, &length) == 3 &&
			   is_inside(offset, length)) {
			long at = numbers(seed, offset, length, 1);
			if (at < 0)
				puts("same");
			else
				printf("differs %ld\n", at);
		} else if (sscanf(line, "word %" SCNu64, &offset) == 1 && is_inside(offset, 8)) {
			memcpy(&word, memory + offset, 8);
			printf("word %" PRIu64 "\n", word);
		} else {
			puts("error no such command");
		}
	}
	return 0;
}
