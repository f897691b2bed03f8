// SPDX-License-Identifier: Apache-2.0
// A Java program that says what its stacks may look like, then runs, for tests/script/judge.py.
//
// usage: java Calls SOURCE SECONDS [CASE...]
//
// Prints a line "frame NAME FIRST LAST CALLER..." for each method of this source that has a comment "called by: ..." before it: the lines
// its frames may be on, and the methods that may call it, directly or through the library ("*": anybody); then "root NAME". A case is a
// way of calling; all of them when none is named. Methods end with the first line that is their indentation and a brace.
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.IntSupplier;
import java.util.function.IntUnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

public class Calls {
    static volatile long sink;
    static long end;

    // called by: leaf compare raised caught reflected run call get small big locked lambda$useLambda$0 lambda$useStream$1 lambda$useAnother$2
    // called by: applyAsInt <init> <clinit> useOsr manyArguments wide allocating viaInterface close clean recursive joined virtual main go threaded
    static int spin(int ms) {
        long until = System.nanoTime() + ms * 1000000L;
        int n = 0;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 300; i++) {
                n += i * i ^ n;
            }
        }
        sink += n;
        return n;
    }

    // --- deep ---
    // called by: down
    static int leaf() {
        return spin(5);
    }

    // called by: down useDeep
    static int down(int n) {
        if (n > 0) {
            return down(n - 1) + 1;
        }
        return leaf();
    }

    // called by: go
    static void useDeep() {
        down(500);
    }

    // --- short calls, that compilers inline ---
    // called by: useTiny twice
    static int once(int x) {
        return x * 31 + (x >> 3);
    }

    // called by: useTiny
    static int twice(int x) {
        int y = once(x);
        return y ^ once(x + 1);
    }

    // called by: go
    static void useTiny() {
        int n = 0;
        for (int i = 0; i < 200000; i++) {
            n += once(i);
            n += twice(i);
        }
        sink += n;
    }

    // --- many implementations of one method ---
    interface Shape {
        int area(int n);
    }

    static class Square implements Shape {
        // called by: viaInterface
        public int area(int n) {
            return small(n);
        }
    }

    static class Circle implements Shape {
        // called by: viaInterface
        public int area(int n) {
            return big(n);
        }
    }

    static class Line implements Shape {
        // called by: viaInterface
        public int area(int n) {
            return n % 3;
        }
    }

    // called by: area
    static int small(int n) {
        return (n & 2047) == 0 ? spin(1) : n * 3;
    }

    // called by: area
    static int big(int n) {
        return (n & 2047) == 1 ? spin(1) : n * 5;
    }

    // called by: useShapes
    static int viaInterface(Shape s, int n) {
        return s.area(n);
    }

    // called by: go
    static void useShapes() {
        Shape[] shapes = { new Square(), new Circle(), new Line() };
        for (int n = 0; n < 20000; n++) {
            sink += viaInterface(shapes[n % 3], n);
        }
    }

    // --- exceptions ---
    // called by: raised caught
    static int raised(int n) {
        if (n == 0) {
            spin(2);
            throw new IllegalStateException("to be caught");
        }
        return raised(n - 1) + 1;
    }

    // called by: useException
    static int caught(int n) {
        try {
            return raised(n);
        } catch (IllegalStateException e) {
            return spin(2);
        }
    }

    // called by: go
    static void useException() {
        for (int i = 0; i < 5; i++) {
            sink += caught(i);
        }
        for (int i = 0; i < 2000; i++) {
            sink += quickly(i);
        }
    }

    // called by: useException
    static int quickly(int i) {
        int[] few = new int[2];
        Object nothing = i % 7 == 0 ? null : few;
        try {
            return nothing.hashCode() + few[i % 5];
        } catch (NullPointerException | ArrayIndexOutOfBoundsException e) {
            return e.getMessage() == null ? 1 : 2;
        }
    }

    // --- lambdas and streams ---
    // called by: go
    static void useLambda() {
        IntUnaryOperator f = x -> {
            return spin(2) + x;
        };
        sink += f.applyAsInt(1);
    }

    // called by: go
    static void useStream() {
        sink += IntStream.range(0, 4).map(x -> spin(1) + x).sum();
    }

    // called by: go
    static void useAnother() {
        IntSupplier s = () -> spin(2);
        sink += s.getAsInt();
    }

    // --- through the library and back ---
    // the compiler makes another compare(), on the line of the class, that calls the one below
    static class Order implements java.util.Comparator<Integer> {
        // called by: compare useSort
        public int compare(Integer a, Integer b) {
            if ((a ^ b) % 16 == 1) {
                spin(1);
            }
            return Integer.compare(a, b);
        }
    }

    // called by: go
    static void useSort() {
        Integer[] numbers = new Integer[200];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = i * 7919 % 200;
        }
        Arrays.sort(numbers, new Order());
    }

    // called by: useReflection
    public static int reflected(int ms) {
        return spin(ms);
    }

    // called by: go
    static void useReflection() throws Exception {
        Method m = Calls.class.getMethod("reflected", int.class);
        for (int i = 0; i < 3; i++) {
            sink += (Integer) m.invoke(null, 2);
        }
    }

    // called by: go
    static void usePrivileged() throws Exception {
        Callable<Integer> c = new Callable<Integer>() {
            // called by: joined call
            public Integer call() {
                return spin(3);
            }
        };
        sink += joined(c);
    }

    // called by: usePrivileged
    static int joined(Callable<Integer> c) throws Exception {
        return c.call();
    }

    // --- frames of all sizes ---
    // called by: useArguments
    static int manyArguments(int a, long b, double c, int d, long e, double f, int g, long h, double i, int j, long k, Object l) {
        long sum = a + b + (long) c + d + e + (long) f + g + h + (long) i + j + k + l.hashCode();
        return spin(2) + (int) sum;
    }

    // called by: useArguments
    static long wide(long a, long b, long c, long d, long e, long f, long g, long h) {
        long x = a * b + c, y = d * e + f, z = g * h + a;
        for (int i = 0; i < 100; i++) {
            x = x * 31 + y;
            y = y * 17 + z;
            z = z * 13 + x;
        }
        return spin(1) + x + y + z;
    }

    // called by: go
    static void useArguments() {
        sink += manyArguments(1, 2, 3.5, 4, 5, 6.5, 7, 8, 9.5, 10, 11, "twelve");
        sink += wide(1, 2, 3, 4, 5, 6, 7, 8);
    }

    // called by: go
    static void useOsr() {
        long n = 0;
        for (int i = 0; i < 3000000; i++) {
            n += i ^ n << 1;
        }
        sink += n + spin(1);
    }

    // called by: useMemory
    static int allocating(int n) {
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            kept.add(new byte[1000 + i % 100]);
            if (kept.size() > 100) {
                kept.clear();
            }
        }
        return kept.size() + spin(1);
    }

    // called by: go
    static void useMemory() {
        sink += allocating(20000);
    }

    // --- locks, constructors, monitors ---
    static final Object lock = new Object();

    // called by: useLock
    static synchronized int locked(int ms) {
        synchronized (lock) {
            return spin(ms);
        }
    }

    // called by: go
    static void useLock() {
        sink += locked(3);
    }

    static class Made implements AutoCloseable {
        int n;

        // called by: useConstructor
        Made(int ms) {
            n = spin(ms);
        }

        // called by: useConstructor
        public void close() {
            n += spin(1);
        }
    }

    // called by: go
    static void useConstructor() {
        try (Made made = new Made(2)) {
            sink += made.n;
        }
    }

    // --- threads ---
    // called by: run
    static void threaded() {
        sink += spin(3);
    }

    static class Task implements Runnable {
        // called by: *
        public void run() {
            threaded();
        }
    }

    // called by: go
    static void useThreads() throws Exception {
        Thread[] threads = { new Thread(new Task()), new Thread(new Task()) };
        for (Thread t : threads) {
            t.start();
        }
        for (Thread t : threads) {
            t.join();
        }
    }

    // --- what it says of itself ---
    // called by: main
    static void sayTruth(String source) throws Exception {
        List<String> lines = Files.readAllLines(Paths.get(source));
        Pattern head = Pattern.compile("^( +)(?:public |static |synchronized |final )*(?:(?:<.*> )?[\\w<>\\[\\]]+ )?(\\w+)\\(.*\\{$");
        Pattern type = Pattern.compile("^ *(?:public |static )*(?:class|interface) (\\w+).*\\{$");
        List<String> callers = new ArrayList<>();
        String inner = "", outer = "";
        int anonymous = 0;
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i);
            Matcher m = head.matcher(line), t = type.matcher(line);
            if (line.trim().startsWith("// called by: ")) {
                callers.add(line.trim().substring("// called by: ".length()));
            } else if (line.contains("= new Callable<Integer>() {")) {
                inner = "$" + ++anonymous;
                System.out.println("frame Calls" + inner + ".call " + (i + 1) + " " + (i + 1) + " joined");
                System.out.println("frame Calls" + inner + ".<init> " + (i + 1) + " " + (i + 1) + " usePrivileged");
            } else if (t.matches()) {
                inner = line.startsWith(" ") ? "$" + t.group(1) : "";
                callers.clear();
                if (line.startsWith(" ") && line.contains("class ") && !t.group(1).equals("Made")) { // the compiler's own constructor
                    System.out.println("frame Calls" + inner + ".<init> " + (i + 1) + " " + (i + 1) + " *");
                }
                if (line.contains("Comparator")) {
                    System.out.println("frame Calls" + inner + ".compare " + (i + 1) + " " + (i + 1) + " useSort");
                }
            } else if (line.equals("    }") || line.equals("        };")) {
                inner = "";
            } else if (m.matches() && !callers.isEmpty()) {
                int last = i + 1;
                while (!lines.get(last).equals(m.group(1) + "}")) {
                    last++;
                }
                String name = m.group(2).equals("Made") ? "<init>" : m.group(2);
                String called = String.join(" ", callers);
                System.out.println("frame Calls" + inner + "." + name + " " + (i + 1) + " " + (last + 1) + " " + called);
                sayLambdas(lines, i, last, name);
                callers.clear();
                if (inner.isEmpty()) {
                    i = name.startsWith("use") ? i : last;
                }
            }
        }
        System.out.println("root Calls.main");
        System.out.println("deep Calls.down 501 Calls.leaf");
    }

    static int lambdas;

    // called by: sayTruth
    static void sayLambdas(List<String> lines, int first, int last, String name) {
        for (int i = first; i < last; i++) {
            if (lines.get(i).contains("-> ") && !lines.get(i).contains("contains(")) {
                int end = lines.get(i).endsWith("{") ? i + 2 : i;
                System.out.println("frame Calls.lambda$" + name + "$" + lambdas++ + " " + (i + 1) + " " + (end + 1) + " " + name);
            }
        }
    }

    // called by: main
    static void go(List<String> cases) throws Exception {
        if (cases.isEmpty() || cases.contains("deep")) {
            useDeep();
        }
        if (cases.isEmpty() || cases.contains("tiny")) {
            useTiny();
        }
        if (cases.isEmpty() || cases.contains("shapes")) {
            useShapes();
        }
        if (cases.isEmpty() || cases.contains("exception")) {
            useException();
        }
        if (cases.isEmpty() || cases.contains("lambda")) {
            useLambda();
            useStream();
            useAnother();
        }
        if (cases.isEmpty() || cases.contains("library")) {
            useSort();
            useReflection();
            usePrivileged();
        }
        if (cases.isEmpty() || cases.contains("arguments")) {
            useArguments();
        }
        if (cases.isEmpty() || cases.contains("osr")) {
            useOsr();
        }
        if (cases.isEmpty() || cases.contains("memory")) {
            useMemory();
        }
        if (cases.isEmpty() || cases.contains("lock")) {
            useLock();
            useConstructor();
        }
        if (cases.isEmpty() || cases.contains("threads")) {
            useThreads();
        }
    }

    // called by: *
    public static void main(String[] args) throws Exception {
        List<String> cases = Arrays.asList(args).subList(2, args.length);
        sayTruth(args[0]);
        System.out.flush();
        end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        while (System.nanoTime() < end) {
            go(cases);
        }
    }
}
