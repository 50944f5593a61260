import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** What a job does is its first argument; one that streams writes its numbers to a file. */
public final class Jobs {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        switch (arguments[0]) {
            case "batch" -> {
                env.setRuntimeMode(RuntimeExecutionMode.BATCH);
                env.fromSequence(1, Long.parseLong(arguments[1]))
                        .map(new Counted())
                        .sinkTo(new DiscardingSink<>());
            }
            case "stream" -> stream(env, arguments[1]);
            case "slow-main" -> {
                Thread.sleep(Long.parseLong(arguments[2]));
                stream(env, arguments[1]);
            }
            case "failing" -> env.fromSequence(1, 10).map(new Failing()).sinkTo(new DiscardingSink<>());
            case "two" -> {
                stream(env, arguments[1]);
                env.execute("first");
                stream(env, arguments[1]);
            }
            case "nothing" -> {
                return;
            }
            default -> throw new IllegalArgumentException("no such job: " + arguments[0]);
        }
        env.execute("job " + arguments[0]);
    }

    private static void stream(StreamExecutionEnvironment env, String file) {
        env.fromSequence(1, Long.MAX_VALUE)
                .uid("numbers")
                .map(new Told(file))
                .uid("told")
                .sinkTo(new DiscardingSink<>())
                .uid("sink");
    }

    static final class Counted extends RichMapFunction<Long, Long> {
        private final LongCounter count = new LongCounter();

        @Override
        public void open(OpenContext context) {
            getRuntimeContext().addAccumulator("numbers", count);
        }

        @Override
        public Long map(Long value) {
            count.add(1);
            return value;
        }
    }

    static final class Told extends RichMapFunction<Long, Long> {
        private final String file;

        Told(String file) {
            this.file = file;
        }

        @Override
        public Long map(Long value) throws Exception {
            Thread.sleep(20);
            Files.writeString(
                    Path.of(file), value + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            return value;
        }
    }

    static final class Failing extends RichMapFunction<Long, Long> {
        @Override
        public Long map(Long value) {
            if (value == 3) {
                throw new IllegalStateException("the third number is wrong");
            }
            return value;
        }
    }
}
