// SPDX-License-Identifier: Apache-2.0
// A Java program whose virtual threads call deeply, wait, and go on on other carriers, and that says what its stacks may look like, for
// tests/script/judge.py. JDK 21 and later.
//
// usage: java VirtualCalls SOURCE SECONDS [CASE...]
//
// Prints lines as Calls.java does. No method calls itself: a cycle of methods does, so that a frame that is left out is seen. Who called the
// outermost frame that is on a carrier's stack is not judged, if its callers are in the heap.
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class VirtualCalls {
    static volatile long sink;
    static long end;

    // called by: parked yielded handed slept one two three four five wide many locked pinned shallow fresh
    static int spin(int us) {
        long until = System.nanoTime() + us * 1000L;
        int n = 0;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 100; i++) {
                n += i * i ^ n;
            }
        }
        sink += n;
        return n;
    }

    // --- ways to leave the carrier ---
    // called by: leaf
    static int parked() {
        int n = spin(200);
        LockSupport.parkNanos(1000);
        return n + spin(200);
    }

    // called by: leaf
    static int yielded() {
        int n = spin(100);
        Thread.yield();
        return n + spin(100);
    }

    static final BlockingQueue<Integer> queue = new ArrayBlockingQueue<>(2);

    // called by: leaf
    static int handed() {
        int n = spin(100);
        try {
            queue.put(n);
            n += queue.take();
        } catch (InterruptedException e) {
            return n;
        }
        return n + spin(100);
    }

    // called by: leaf
    static int slept() {
        int n = spin(100);
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            return n;
        }
        return n + spin(100);
    }

    // called by: one shallow locked pinned many
    static int leaf(int way) {
        switch (way % 4) {
        case 0:
            return parked();
        case 1:
            return yielded();
        case 2:
            return handed();
        default:
            return slept();
        }
    }

    // --- deep: each returns into the heap once its callers were left there ---
    // called by: five deep
    static int one(int n, int way) {
        int result = n > 0 ? two(n - 1, way) : leaf(way);
        return result + spin(20);
    }

    // called by: one
    static int two(int n, int way) {
        return three(n, way) + spin(20);
    }

    // called by: two
    static int three(int n, int way) {
        return four(n, way) + spin(20);
    }

    // called by: three
    static int four(int n, int way) {
        return wide(n, way, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8);
    }

    // called by: four
    static int wide(int n, int way, int c, int d, int e, int f, int g, int h, int i, int j) {
        return five(n, way) + spin(20) + c + d + e + f + g + h + i + j;
    }

    // called by: wide
    static int five(int n, int way) {
        return one(n, way) + spin(20);
    }

    // called by: task
    static int deep(int way) {
        return one(20, way);
    }

    // --- all of it comes back at once ---
    // called by: task
    static int shallow(int way) {
        return leaf(way) + spin(50);
    }

    static final ReentrantLock lock = new ReentrantLock();

    // called by: task
    static int locked(int way) {
        lock.lock();
        try {
            return leaf(way & 1) + spin(50);
        } finally {
            lock.unlock();
        }
    }

    // --- a monitor: until JDK 23 the carrier waits, too ---
    // called by: task
    static int pinned(int way) {
        synchronized (Thread.currentThread()) {
            return leaf(way & 1) + spin(50);
        }
    }

    // called by: task
    static int many(int way, long a, long b, long c, long d, long e, long f, long g, long h) {
        return leaf(way) + spin(50) + (int) (a + b + c + d + e + f + g + h);
    }

    // --- before it waits for the first time no frame is in the heap ---
    // called by: task
    static int fresh() {
        return spin(100000);
    }

    // called by: *
    static void task() {
        sink += fresh();
        for (int way = 0; System.nanoTime() < end; way++) {
            for (String name : cases) {
                if (name.equals("deep")) {
                    sink += deep(way);
                } else if (name.equals("shallow")) {
                    sink += shallow(way);
                } else if (name.equals("locked")) {
                    sink += locked(way);
                } else if (name.equals("pinned")) {
                    sink += pinned(way);
                } else {
                    sink += many(way, 1, 2, 3, 4, 5, 6, 7, 8);
                }
            }
        }
        queue.offer(1);
    }

    // --- what it says of itself ---
    // called by: main
    static void sayTruth(String source) throws Exception {
        List<String> lines = Files.readAllLines(Paths.get(source));
        Pattern head = Pattern.compile("^    (?:public )?static [\\w<>]+ (\\w+)\\(.*\\{$");
        String callers = null;
        for (int i = 0; i < lines.size(); i++) {
            Matcher m = head.matcher(lines.get(i));
            if (lines.get(i).startsWith("    // called by: ")) {
                callers = lines.get(i).substring("    // called by: ".length());
            } else if (m.matches() && callers != null) {
                int last = i;
                while (!lines.get(last).equals("    }")) {
                    last++;
                }
                System.out.println("frame VirtualCalls." + m.group(1) + " " + (i + 1) + " " + (last + 1) + " " + callers);
                callers = null;
            }
        }
        System.out.println("root VirtualCalls.task");
    }

    static List<String> cases = Arrays.asList("deep", "shallow", "locked", "pinned", "many");

    // called by: *
    public static void main(String[] args) throws Exception {
        sayTruth(args[0]);
        System.out.flush();
        if (args.length > 2) {
            cases = Arrays.asList(args).subList(2, args.length);
        }
        end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            threads.add(Thread.ofVirtual().start(VirtualCalls::task));
        }
        for (Thread t : threads) {
            t.join(Math.max(1, 1000 + (end - System.nanoTime()) / 1000000));
        }
        System.exit(0);
    }
}
