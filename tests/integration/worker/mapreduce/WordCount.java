import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/** Counts words; it reads no options of Hadoop itself. A word "slow" takes a second, "bad" fails. */
public class WordCount {
  public static class Words extends Mapper<Object, Text, Text, IntWritable> {
    @Override
    public void map(Object key, Text line, Context context)
        throws IOException, InterruptedException {
      for (String word : line.toString().split(" ")) {
        if (word.equals("slow")) {
          Thread.sleep(1000);
        }
        if (word.equals("bad")) {
          throw new IOException("a bad word");
        }
        String said = context.getConfiguration().get("words.prefix", "") + word;
        context.write(new Text(said), new IntWritable(1));
      }
    }
  }

  public static class Sum extends Reducer<Text, IntWritable, Text, IntWritable> {
    @Override
    public void reduce(Text word, Iterable<IntWritable> ones, Context context)
        throws IOException, InterruptedException {
      int sum = 0;
      for (IntWritable one : ones) {
        sum += one.get();
      }
      context.write(word, new IntWritable(sum));
    }
  }

  public static void main(String[] arguments) throws Exception {
    Job job = Job.getInstance(new Configuration(), "words");
    job.setJarByClass(WordCount.class);
    job.setMapperClass(Words.class);
    job.setReducerClass(Sum.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(IntWritable.class);
    FileInputFormat.addInputPath(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    System.out.println("day " + System.getenv("SHOAL_PARAM_DAY"));
    System.exit(job.waitForCompletion(true) ? 0 : 1);
  }
}
