import hooks from 'eslint-plugin-react-hooks'
import tseslint from 'typescript-eslint'

// What each layer may import: app > features > the middle > api, shared. Features stand apart.
const only = (files, forbidden, why) => ({
  files,
  rules: {
    'no-restricted-imports': ['error', { patterns: [{ group: forbidden, message: why }] }],
  },
})

export default tseslint.config(
  { ignores: ['src/api/schema.gen.d.ts', 'node_modules'] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    plugins: { 'react-hooks': hooks },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      'no-console': 'error',
    },
  },
  { files: ['*.js', 'e2e/*.mjs'], ...tseslint.configs.disableTypeChecked },
  {
    // The routes know their own types by way of the router, which the rules take for `any`.
    files: ['src/app/router.tsx'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/only-throw-error': 'off', // redirects are thrown
    },
  },
  only(['src/shared/**'], ['@/app/*', '@/features/*', '@/entities/*', '@/live/*', '@/graph/*', '@/definition/*', '@/api/*'], 'shared knows nothing of Shoal'),
  only(['src/api/**'], ['@/app/*', '@/features/*', '@/entities/*', '@/live/*', '@/graph/*', '@/definition/*'], 'api stands below'),
  only(['src/entities/**', 'src/graph/**', 'src/live/**', 'src/definition/**'], ['@/app/*', '@/features/*'], 'this stands below the features'),
  only(['src/features/**'], ['@/app/*'], 'features stand below app'),
)
